import { Readable } from "node:stream";
import { expect, test } from "vitest";
import type { DagRun } from "../client/resources.ts";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { type Host, Session } from "../session.ts";
import { Terminal } from "../terminal.ts";
import { applyToRuns } from "./changed-runs.ts";

const run = (runId: string) => ({ run: { dag_run_id: runId } as DagRun, tasks: 2 });
const failure = (code: string, exit: ExitCode) => new CliError(code, `${code} of the server`, { exit });

/** Clears runs a to d with the given failures; returns the requests, the error and the notes. */
async function clear(failures: Record<string, CliError>, signal?: "SIGINT") {
  const written: string[] = [];
  const sink = { write: (text: string) => written.push(text) };
  const host: Host = {
    stdout: sink,
    stderr: sink,
    stdin: Readable.from([]),
    env: {},
    onSignal: (_, listener) => {
      if (signal) listener(signal);
      return () => {};
    },
    exit: () => {},
  };
  const asked: string[] = [];
  const error = await applyToRuns(new Session(host, new Terminal(host, {}), () => ({})), {
    dagId: "etl",
    affected: ["a", "b", "c", "d"].map(run),
    participle: "cleared",
    unneeded: "had ended",
    change: async (runId) => {
      asked.push(runId);
      if (failures[runId]) throw failures[runId];
      return runId !== "d";
    },
  }).then(
    () => null,
    (thrown: CliError) => thrown,
  );
  return { asked, error, notes: written.join("") };
}

test("changes the other runs after an error about one run", async () => {
  const { asked, error, notes } = await clear({ b: failure("CONFLICT", EXIT.conflict) });
  expect(asked).toEqual(["a", "b", "c", "d"]);
  expect(notes).toBe("2 of 4 runs of etl cleared. 1 run had ended.\n");
  expect(error).toMatchObject({
    code: "TW_CLI_PARTIAL",
    exit: EXIT.failed,
    message: "1 run could not be cleared:\n  b: CONFLICT of the server",
    remedy: expect.stringContaining("again"),
  });
});

test("stops at an unreachable server and names the remaining runs", async () => {
  const { asked, error, notes } = await clear({ b: failure("TW_CLI_UNREACHABLE", EXIT.server) });
  expect(asked).toEqual(["a", "b"]);
  expect(notes).toBe("1 of 4 runs of etl cleared.\n");
  expect(error).toMatchObject({
    exit: EXIT.server,
    message:
      "3 runs could not be cleared:\n  b: TW_CLI_UNREACHABLE of the server\n  c: not tried\n  d: not tried",
  });
});

test("stops at Ctrl-C and names the remaining runs", async () => {
  const { asked, error } = await clear({}, "SIGINT");
  expect(asked).toEqual([]);
  expect(error).toMatchObject({ exit: EXIT.interrupted, message: expect.stringContaining("a: not tried") });
});

/** Runs by name and by range, their logs, and the report of a failure. */
import { cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { runCli, StandaloneProcess } from "./support/standalone-process.ts";

const DAGS = fileURLToPath(new URL("run-dags", import.meta.url));
let standalone: StandaloneProcess;
const tw = (...argv: string[]) => runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
const json = async (...argv: string[]): Promise<never> =>
  JSON.parse((await tw(...argv, "--json")).stdout) as never;
const idOf = async (run: string) =>
  ((await json("runs", "show", "daily", run)) as { dag_run_id: string }).dag_run_id;
const ids = async (...argv: string[]) =>
  ((await json("runs", "list", "daily", ...argv)) as { dag_run_id: string }[]).map((run) => run.dag_run_id);

async function trigger(runId: string, date: string): Promise<void> {
  const run = ["--run-id", runId, "--logical-date", date];
  expect((await tw("dags", "trigger", "daily", ...run, "--wait")).code).toBe(0);
}

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-runs-"));
  await cp(DAGS, join(folder, "dags"), { recursive: true });
  standalone = await StandaloneProcess.startOn(folder);
  await standalone.until(/2 DAGs loaded/);
  // 02:00 and 14:00 on 14 March in Berlin, then 02:00 on the 15th: in UTC, the first is also on the 14th, the last is not.
  await trigger("night", "2026-03-14T01:00:00Z");
  await trigger("noon", "2026-03-14T13:00:00Z");
  await trigger("next", "2026-03-14T23:30:00Z");
}, 120_000);
afterAll(() => standalone?.remove());

describe("naming a run", () => {
  it("accepts an id, a logical date in the DAG's time zone, and @latest", async () => {
    expect(await idOf("noon")).toBe("noon");
    expect(await idOf("2026-03-15")).toBe("next");
    expect(await idOf("2026-03-14T14:00")).toBe("noon");
    expect(await idOf("2026-03-14T01:00Z")).toBe("night");
    await trigger("local", "2026-03-16T02:00");
    expect(await json("runs", "show", "daily", "2026-03-16")).toMatchObject({
      dag_run_id: "local",
      logical_date: "2026-03-16T01:00:00.000Z",
    });
    await tw("runs", "delete", "daily", "local", "--yes");
    const newest = await ids();
    expect([await idOf("@latest"), await idOf("@latest~1"), await idOf("@latest~2")]).toEqual(
      newest.slice(0, 3),
    );
  });

  it("rejects a name that matches several runs or none", async () => {
    const several = await tw("runs", "show", "daily", "2026-03-14");
    expect(several.code).toBe(2);
    expect(several.stderr).toBe(
      [
        "error: 2 runs of daily have the logical date 2026-03-14 (Europe/Berlin). [TW_CLI_RUN_AMBIGUOUS]",
        "  night  2026-03-14 01:00:00Z  success",
        "  noon  2026-03-14 13:00:00Z  success",
        "  → name one of them by its id or its exact time\n",
      ].join("\n"),
    );
    expect(await tw("tasks", "list", "daily", "2026-03-16")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("[TW_CLI_NO_SUCH_RUN]"),
    });
    expect((await tw("runs", "show", "daily", "@latest~9")).stderr).toContain("the DAG daily has 3 runs");
    expect((await tw("runs", "show", "daily", "@failed")).stderr).toContain("has no failed runs yet");
    expect(await tw("runs", "show", "daily", "latest")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("→ did you mean @latest?"),
    });
    expect(await tw("runs", "show", "daily", "@newest")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("use @latest"),
    });
  });

  it("filters lists by a run with its DAG", async () => {
    const args = ["deadlines", "list", "--run", "2026-03-15"];
    expect((await tw(...args, "--dag", "daily")).stderr).toBe("No deadlines match.\n");
    expect(await tw("waiting", "--run", "@latest")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--run @latest needs a DAG"),
    });
  });

  it("suggests a run for a part of its name", async () => {
    await tw("dags", "trigger", "daily", "--run-id", "reload__of_march__by_hand", "--wait");
    expect((await tw("runs", "show", "daily", "of_march")).stderr).toContain(
      'did you mean "reload__of_march__by_hand"?',
    );
    expect((await tw("tasks", "logs", "daily", "noon", "frist")).stderr).toContain('did you mean "first"?');
    await tw("runs", "delete", "daily", "reload__of_march__by_hand", "--yes");
  });
});

describe("range of runs", () => {
  it("lists runs by date or age and state", async () => {
    expect(await ids("--since", "2026-03-14", "--until", "2026-03-14")).toEqual(["noon", "night"]);
    expect(await ids("--since", "2026-03-14T14:00")).toEqual(["next", "noon"]);
    expect(await ids("--until", "2026-03-14T02:00")).toEqual(["night"]);
    // Their dates are long past, but they ran recently.
    expect(await ids("--since", "2h")).toEqual(["next", "noon", "night"]);
    expect(await ids("--until", "2h")).toEqual([]);
    expect(await ids("--since", "2h", "--until", "2026-03-14T02:00")).toEqual(["night"]);
    expect(await ids("--since", "2026-03-14", "--state", "failed")).toEqual([]);
    expect((await tw("runs", "list", "daily", "--since", "2d", "--until", "3d")).code).toBe(2);
    expect((await tw("runs", "list", "daily", "--since", "soon")).stderr).toContain("such as 2026-01-31");
  });

  it("clears runs after a preview and with --yes only, and can be repeated", async () => {
    const clear = ["runs", "clear", "daily", "--since", "2026-03-14", "--until", "2026-03-14"];
    const dry = await tw(...clear, "--dry-run");
    expect(dry.stderr).toMatch(
      /^RUN +STATE .*TASKS\nnight +success .* 2\nnoon +success .* 2\nWould rerun 4 tasks of 2 runs of daily\.\n$/,
    );
    const refused = await tw(...clear);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("nothing was changed. [TW_CLI_USAGE]\n  → add --yes to confirm");
    const tries = async () => ((await json("tasks", "list", "daily", "noon")) as { try_number: number }[])[0];
    expect(await tries()).toMatchObject({ try_number: 1 });
    expect((await tw(...clear, "--yes")).stderr).toContain("2 of 2 runs of daily cleared.\n");
    expect((await tw("runs", "wait", "daily", "noon", "--timeout", "60s")).code).toBe(0);
    expect(await tries()).toMatchObject({ try_number: 2 });
    expect((await tw("runs", "clear", "daily", "noon", "next", "--only-failed", "--yes")).stderr).toBe(
      "Nothing to clear.\n",
    );
    expect((await tw("runs", "clear", "daily")).stderr).toContain("no runs selected");
    expect((await tw("runs", "clear", "daily", "noon", "--since", "2d")).code).toBe(2);
    expect((await tw("runs", "clear", "daily", "noon", "nope", "--yes")).code).toBe(3);
  });

  it("cancels queued runs first and skips runs that have ended", async () => {
    const lasting = ["--conf", '{"lasts":true}'];
    await tw("dags", "trigger", "daily", "--run-id", "long", ...lasting);
    await expect
      .poll(async () => (await tw("tasks", "list", "daily", "long", "--state", "running")).stdout, {
        timeout: 60_000,
      })
      .toContain("first");
    await tw("dags", "pause", "daily");
    for (const runId of ["held1", "held2"]) await tw("dags", "trigger", "daily", "--run-id", runId);
    const cancel = ["runs", "cancel", "daily", "--since", "1h"];
    expect((await tw(...cancel, "--dry-run")).stderr).toMatch(
      /held2 .* 0\nheld1 .* 0\nlong +running .* 2\nWould cancel 2 tasks of 3 runs of daily\.\n$/,
    );
    expect((await tw(...cancel)).code).toBe(2);
    expect(await json(...cancel, "--yes")).toMatchObject({ done: ["held2", "held1", "long"], left: [] });
    expect((await tw(...cancel, "--yes")).stderr).toBe("No queued or running runs match.\n");
    expect(await tw("runs", "cancel", "daily", "held1", "held2", "--yes")).toMatchObject({
      code: 0,
      stderr: "Nothing to cancel: already ended: held1 (failed), held2 (failed).\n",
    });
    for (const more of ["--yes", "--dry-run"])
      expect(await tw("runs", "cancel", "daily", "held1", more)).toMatchObject({
        code: 5,
        stderr:
          "error: the run held1 of daily has already ended (failed). [TW_CLI_RUN_ENDED]\n  → rerun it: `tradewind runs clear daily held1`\n",
      });
    await tw("dags", "unpause", "daily");
  });
});

describe("failed run", () => {
  it("shows the first failure and the command that prints its log", async () => {
    const run = ["dags", "trigger", "shaky", "--run-id", "bad", "--wait"];
    const failed = await tw(...run);
    expect(failed.code).toBe(1);
    expect(failed.stderr).toMatch(
      / {2}failed first: broken, try 1: Error: cannot divide .*\n {2}its log: tradewind tasks logs shaky bad broken\n$/,
    );
    const { stdout } = await tw("runs", "show", "shaky", "@failed");
    expect(stdout).toMatch(/^failed first +broken, try 1, \d{4}-.*Z: Error: cannot divide/m);
    expect(stdout).toMatch(/^its log +tradewind tasks logs shaky bad broken$/m);
    const missed = async () => (await tw("runs", "show", "shaky", "bad")).stdout;
    await expect
      .poll(missed, { timeout: 60_000 })
      .toMatch(/^missed +deadline of the run, counted from start: due \d{4}-/m);
  });

  it("shows source locations in its log, and no frames of the engine", async () => {
    const own = join(standalone.folder, "dags");
    const { stdout } = await tw("tasks", "logs", "shaky", "bad", "broken");
    expect(stdout).toContain(`    at divide (${own}/lib/divide.ts:2:`);
    expect(stdout).not.toMatch(/dags:\/|file:\/\/|node:internal|tradewindCallsUserCode/);
    const test = await runCli(["dags", "test", "shaky", "--dags", own], {});
    expect(test.stderr).toContain(`    at divide (${own}/lib/divide.ts:2:`);
    expect(test.stderr).not.toMatch(/dags:\/|file:\/\/|node:internal|tradewindCallsUserCode/);
  });

  it("explains why a log is empty", async () => {
    const note = async (...argv: string[]) => (await tw("tasks", "logs", ...argv)).stderr;
    expect(await note("shaky", "bad", "silent")).toBe(
      "The log is empty: silent wrote nothing; it succeeded.\n",
    );
    expect(await note("shaky", "bad", "never")).toMatch(
      /^The log is empty: never did not run, because a task before it failed\.\n {2}because broken is failed\n/,
    );
    await tw("dags", "pause", "shaky");
    await tw("dags", "trigger", "shaky", "--run-id", "held");
    expect(await note("shaky", "held", "items")).toMatch(
      /items waits for its run to start\.\n {2}because DAG "shaky" is paused.*\[DAG_PAUSED\]\n$/,
    );
    expect((await tw("runs", "logs", "shaky", "held")).stderr).toMatch(
      /^No log yet: run held has not started: DAG "shaky" is paused/,
    );
    const env = { TRADEWIND_HOME: standalone.home };
    expect(
      await runCaptured(["runs", "logs", "shaky", "held", "-f"], { env, signal: "SIGTERM" }),
    ).toMatchObject({
      code: 130,
      stderr: expect.stringMatching(/^No log yet: .*\[DAG_PAUSED\]\n$/),
    });
    await tw("runs", "delete", "shaky", "held", "--yes");
    await tw("dags", "unpause", "shaky");
  });
});

describe("a run", () => {
  it("is marked, and gets a note; a task gets one, too", async () => {
    await tw("runs", "mark", "shaky", "bad", "success", "--yes");
    expect(await json("runs", "show", "shaky", "bad")).toMatchObject({ state: "success" });
    const marked = await tw("runs", "mark", "shaky", "bad", "failed", "--yes");
    expect(marked.stderr + marked.stdout).toContain("Run bad of shaky marked as failed.");
    await tw("runs", "set", "shaky", "bad", "--note", "Known: the partner was late");
    expect(await json("runs", "show", "shaky", "bad")).toMatchObject({ note: "Known: the partner was late" });
    const removed = await tw("runs", "set", "shaky", "bad", "--note", "");
    expect(removed.stderr + removed.stdout).toContain("Note of run bad of shaky removed.");
    expect(await json("runs", "show", "shaky", "bad")).toMatchObject({ note: null });
    const task = await json("tasks", "set", "shaky", "bad", "broken", "--note", "on purpose");
    expect(task).toMatchObject({ task_instances: [{ task_id: "broken", note: "on purpose" }] });
  });
});

describe("log of a run", () => {
  it("merges the lines of all tasks by time, each with its task", async () => {
    const { stdout } = await tw("runs", "logs", "shaky", "bad");
    const lines = stdout.trimEnd().split("\n");
    expect(lines.find((each) => each.includes("lists items"))).toMatch(
      /^items +\| (?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3}Z lists/,
    );
    expect(lines.filter((each) => /^each\[[01]\] +\| .* item [ab]$/.test(each))).toHaveLength(2);
    const times = lines.map((each) => /\| (\S+) /.exec(each)?.[1] ?? "");
    expect(times).toEqual(times.toSorted());
    expect(stdout).not.toContain("callback called");
    const errors = await tw("runs", "logs", "shaky", "bad", "--level", "error", "--task", "broken");
    expect(errors.stdout).toContain("ERROR Error: cannot divide");
    expect(errors.stdout).not.toMatch(/^(?!broken |$)/m);
    expect((await tw("runs", "logs", "shaky", "bad", "--task", "brokn")).stderr).toContain(
      'did you mean "broken"?',
    );
  });

  it("includes the lines of callbacks with --callbacks", async () => {
    await expect
      .poll(async () => (await tw("runs", "logs", "shaky", "bad", "--callbacks")).stdout, { timeout: 60_000 })
      .toMatch(/^callback +\| .* WARN callback called$/m);
  });

  it("is coloured by task on a terminal, and JSON with --json", async () => {
    const env = { TRADEWIND_HOME: standalone.home };
    const { stdout } = await runCaptured(["runs", "logs", "shaky", "bad"], { env, columns: 80 });
    expect(stdout.replaceAll("\u001b", "")).toMatch(/^\[36mitems +\|\[39m /m);
    const printed = (await tw("runs", "logs", "shaky", "bad", "--json")).stdout.trimEnd().split("\n");
    expect(JSON.parse(printed[0]!)).toMatchObject({
      task_id: "items",
      try_number: 1,
      line: { level: "info" },
    });
  });

  it("follows the run to its end and prints the outcome", async () => {
    await tw("dags", "trigger", "shaky", "--run-id", "followed");
    const { code, stderr, stdout } = await tw("runs", "logs", "shaky", "followed", "-f", "--callbacks");
    expect(code).toBe(1);
    expect(stderr).toMatch(/✗ shaky +followed +failed/);
    expect(stdout).toContain("lists items");
    expect(stdout).toContain("callback called");
  });
});

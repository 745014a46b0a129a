/**
 * The example that mixes batch and streaming, as a user runs it: a server, a separate streaming process that sends over gRPC,
 * and commands.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { StandaloneProcess } from "./support/standalone-process.ts";

const JOB = fileURLToPath(new URL("../../../examples/jobs/clicks.mjs", import.meta.url));

interface Task {
  readonly task_id: string;
  readonly state: string | null;
  readonly try_number: number;
}

let standalone: StandaloneProcess;
const tw = async (...argv: string[]) => {
  const captured = await runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
  if (captured.code !== 0) throw new Error(`${argv.join(" ")}: ${captured.stderr}`);
  return captured.stdout;
};
const task = async (id: string): Promise<Task | undefined> => {
  const tasks = JSON.parse(await tw("tasks", "list", "online_model", "@latest", "--json")) as Task[];
  return tasks.find(({ task_id }) => task_id === id);
};
const until = async (what: string, isSo: () => Promise<boolean>) => {
  const deadline = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`never: ${what}\n${standalone.stderr.slice(-2_000)}`);
    await sleep(100);
  }
};

beforeAll(async () => {
  standalone = await StandaloneProcess.startWith(["online_model.ts"], ["--signals-port", "0"]);
  await standalone.until(/1 DAG loaded: online_model/);
}, 120_000);
afterAll(() => standalone?.remove());

it("trains for every watermark of an external job, and serves each validated model without a restart", async () => {
  await tw("dags", "trigger", "online_model", "--conf", '{"clicks":"outside"}');
  await until("serve begins", async () => (await task("serve"))?.state === "running");
  expect(await task("train")).toMatchObject({ state: null, try_number: 0 });

  const address = /grpc:\/\/([\d.]+:\d+)/.exec(standalone.stderr)?.[1] ?? "";
  const token = (await readFile(join(standalone.home, "token"), "utf8")).trim();
  const { stdout } = await promisify(execFile)(process.execPath, [JOB, address, token, "3"]);
  expect(stdout.trim().split("\n")).toHaveLength(3);

  await until("three trainings", async () => {
    const train = await task("train");
    return train?.try_number === 3 && train.state === "success";
  });
  await until("the last model is validated", async () => {
    const validated = JSON.parse(await tw("signals", "list", "model.validated", "--json")) as {
      value: { hour: number };
    }[];
    return validated.at(-1)?.value.hour === 3;
  });
  await until("it serves again", async () => {
    const serve = await task("serve");
    return serve?.state === "running" && serve.try_number >= 2;
  });

  await tw("signals", "send", "site.closed");
  await until("the run has ended", async () => {
    const [run] = JSON.parse(await tw("runs", "list", "online_model", "--json")) as { state: string }[];
    return run?.state === "success";
  });
  expect(await task("serve")).toMatchObject({ state: "success" });
}, 180_000);

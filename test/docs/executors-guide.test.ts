/** The executor of docs/guides/executors.md, as the configured module of a real standalone. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ExecutorSubject, executorConformance } from "@tradewind/engine/executor/conformance";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "../../packages/cli/test/support/captured-host.ts";
import { commandSubject } from "../../packages/engine/test/execute/executor-subject.ts";
import { freePort } from "../../packages/engine/test/support/free-port.ts";
import { blocksOf, ROOT } from "./guide.ts";

const EXECUTOR = blocksOf("docs/guides/executors.md").find(({ title }) => title === "executors/command.ts")!;
const DAGS = `
  import { getPriority } from "node:os";
  import { dag } from "tradewind";
  export const started = dag("started", { defaults: { executor: "command" } }, (d) => {
    const one = d.task("one", () => 20);
    d.task("two", { inputs: { one }, executorConfig: { nice: 7 } }, ({ one }) => [one, getPriority()]);
  });
  export const broken = dag("broken", (d) => {
    d.task("never", { executor: "broken" }, () => 1);
  });
`;
const NODE = [process.execPath, "--conditions=source", join(ROOT, "packages/cli/src/main.ts")] as const;
const START_MS = 50_000;

let folder = "";
let server: ChildProcess;
let said = "";
let tw: (...argv: string[]) => ReturnType<typeof runCaptured>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-executor-"));
  // User code may run as another account.
  await chmod(folder, 0o755);
  for (const part of ["dags", "executors"]) await mkdir(join(folder, part));
  await writeFile(join(folder, "dags/started.ts"), DAGS);
  await writeFile(join(folder, "executors/command.ts"), EXECUTOR.text);
  const url = `http://127.0.0.1:${await freePort()}`;
  const of = (command: readonly string[]) => ({
    module: "./executors/command.ts",
    options: { url, command },
  });
  const [node, ...args] = NODE;
  server = spawn(node, [...args, "standalone", "--home", "home", "--port", new URL(url).port], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TMPDIR: process.env.TMPDIR,
      TRADEWIND_EXECUTORS: JSON.stringify({ command: of(NODE), broken: of(["false"]) }),
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  server.stderr?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  for (const deadline = Date.now() + START_MS; !/DAGs? loaded/.test(said); await sleep(20))
    if (server.exitCode !== null || Date.now() > deadline) throw new Error(`no start:\n${said}`);
  const token = (await readFile(join(folder, "home/token"), "utf8")).trim();
  tw = (...argv) => runCaptured(argv, { env: { TRADEWIND_URL: url, TRADEWIND_TOKEN: token } });
}, START_MS);

afterAll(async () => {
  if (server.exitCode === null) {
    server.kill("SIGTERM");
    await once(server, "exit");
  }
  await rm(folder, { recursive: true, force: true });
});

describe("the executor of the guide", () => {
  let subject: ExecutorSubject;

  beforeAll(async () => {
    subject = await commandSubject(join(folder, "executors/command.ts"), NODE);
  });

  for (const { name, run } of executorConformance(async () => subject)) it(name, run, 120_000);
});

it("runs tasks by its command, with their executorConfig", async () => {
  const { code, stderr } = await tw("dags", "trigger", "started", "--wait");
  expect([code, stderr]).toEqual([0, expect.stringContaining("success")]);
  const { stdout } = await tw("tasks", "output", "started", "@latest", "two");
  expect(JSON.parse(stdout)).toEqual([20, 7 + getPriority()]);
  const { stdout: list } = await tw("executors", "list", "--json");
  expect(JSON.parse(list)).toMatchObject([
    { name: "local" },
    { name: "command", type: "module", health: "healthy" },
    { name: "broken", type: "module" },
  ]);
});

it("starts a task again if its command ends without a result, and fails it in the end", async () => {
  const { code } = await tw("dags", "trigger", "broken", "--wait");
  expect(code).not.toBe(0);
  expect((await tw("tasks", "list", "broken", "@latest")).stdout).toContain("its command ended with 1");
});

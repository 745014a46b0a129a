import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { silentLogger } from "../service/logger.ts";
import { childEntries } from "./child-entry.ts";
import { Guardian } from "./guardian.ts";

const PARENT = fileURLToPath(new URL("../../test/execute/orphan-parent.ts", import.meta.url));

test.each([
  ["loop", 1],
  ["loopWithChild", 2],
])("kill -9 of the engine ends a task in a busy loop and its processes: %s", async (taskId, processes) => {
  const dir = await mkdtemp(join(tmpdir(), "tradewind-orphans-"));
  const file = join(dir, "pids");
  const parent = spawn(process.execPath, ["--conditions=source", PARENT, taskId, file], { stdio: "inherit" });
  const pids = await eventually(async () => {
    const lines = (await readFile(file, "utf8").catch(() => "")).trim().split("\n");
    return lines.length === processes && lines[0] !== "" ? lines.map(Number) : null;
  });
  for (const pid of pids) expect(await isRunning(pid)).toBe(true);
  parent.kill("SIGKILL");
  await once(parent, "exit");
  await eventually(async () => ((await Promise.all(pids.map(isRunning))).includes(true) ? null : true));
  await rm(dir, { recursive: true });
});

test.runIf(process.platform === "linux")(
  "a task in a busy loop ends when the engine and its guardian are killed together",
  async () => {
    const dir = await mkdtemp(join(tmpdir(), "tradewind-orphans-"));
    const file = join(dir, "pids");
    const parent = spawn(process.execPath, ["--conditions=source", PARENT, "loop", file], {
      stdio: "inherit",
    });
    const task = await eventually(async () => Number(await readFile(file, "utf8").catch(() => "")) || null);
    const children = (await readFile(`/proc/${parent.pid}/task/${parent.pid}/children`, "utf8"))
      .trim()
      .split(" ");
    const commands = await Promise.all(
      children.map(async (pid) => [Number(pid), await readFile(`/proc/${pid}/cmdline`, "utf8")] as const),
    );
    const guardians = commands.filter(([, command]) => command.includes("guardian"));
    expect(guardians).toHaveLength(1);
    // The engine is stopped first, so that it cannot replace its guardian.
    parent.kill("SIGSTOP");
    for (const [pid] of guardians) process.kill(pid, "SIGKILL");
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await eventually(async () => ((await isRunning(task)) ? null : true));
    await rm(dir, { recursive: true });
  },
);

test("a killed guardian is replaced by one with the list of all groups", async () => {
  const { guardian: entry } = await childEntries();
  const replaced = Promise.withResolvers<void>();
  const guardian = new Guardian({ ...silentLogger, warn: () => replaced.resolve() }, { restartMs: 1 });
  const task = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  const over = once(task, "exit");
  guardian.start(entry);
  guardian.watch(task.pid!);
  process.kill(guardian.pid!, "SIGKILL");
  await replaced.promise;
  await eventually(async () => guardian.pid ?? null);
  guardian.stop();
  expect((await over)[1]).toBe("SIGKILL");
});

/** The process is not our child, so there is no exit event to await. */
async function eventually<T>(look: () => Promise<T | null>): Promise<T> {
  const deadline = Date.now() + 20_000;
  while (Date.now() < deadline) {
    const found = await look();
    if (found !== null) return found;
    await sleep(20);
  }
  throw new Error("it did not happen within 20 s");
}

async function isRunning(pid: number): Promise<boolean> {
  if (process.platform !== "linux") {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }
  if (
    !(await access(`/proc/${pid}`).then(
      () => true,
      () => false,
    ))
  )
    return false;
  // A zombie that was not reaped does not run.
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status !== "" && !status.includes(") Z ");
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const PARENT = fileURLToPath(new URL("./testing/orphan-parent.ts", import.meta.url));

test.each([
  ["loop", 1],
  ["loopWithChild", 2],
])("kill -9 of the engine ends a task in a busy loop and what it started: %s", async (taskId, processes) => {
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

/** Of a process that is nobody's child here there is no event to await. */
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
  // A zombie that nobody has waited for does not run.
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return status !== "" && !status.includes(") Z ");
}

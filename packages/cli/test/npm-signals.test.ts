/** SIGTERM to an npm process, as sent by a process manager that runs `npm start`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { adhoc } from "../../engine/src/store/database/database.ts";
import { isAlive } from "../../engine/test/support/process-alive.ts";
import { SchedulerRig } from "../../engine/test/support/scheduler-rig.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const WAIT_MS = 60_000;

let folder: string;
let npm: ChildProcess;
let output: string;
let postmaster: number | null;

beforeEach(async () => {
  postmaster = null;
  folder = await mkdtemp(join(tmpdir(), "tradewind-npm-"));
  return () => rm(folder, { recursive: true, force: true });
});
/** Only needed after a failed test: kills npm with its children, and PostgreSQL, which has its own process group. */
afterEach(() => {
  for (const left of [-npm.pid!, postmaster]) {
    try {
      if (left !== null) process.kill(left, "SIGKILL");
    } catch {
      // Already ended.
    }
  }
});

/** In its own process group, so that the signal goes only to npm. */
function start(args: readonly string[], env: NodeJS.ProcessEnv): void {
  const { HOME, NODE_COMPILE_CACHE, PATH, TMPDIR } = process.env;
  output = "";
  npm = spawn("npm", args, {
    cwd: ROOT,
    detached: true,
    env: { HOME, NODE_COMPILE_CACHE, PATH, TMPDIR, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const stream of [npm.stdout!, npm.stderr!])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
}

async function until(isTrue: () => boolean, what: string): Promise<void> {
  const end = Date.now() + WAIT_MS;
  while (!isTrue()) {
    if (Date.now() > end || npm.exitCode !== null) throw new Error(`${what} did not happen:\n${output}`);
    await sleep(20);
  }
}

async function terminate(): Promise<number | null> {
  const ended = once(npm, "exit") as Promise<[number | null]>;
  npm.kill("SIGTERM");
  const [code] = await Promise.race([
    ended,
    sleep(WAIT_MS, undefined, { ref: false }).then(() =>
      Promise.reject(new Error(`still there:\n${output}`)),
    ),
  ]);
  return code;
}

it("stops `npm start` and its PostgreSQL before npm ends", async () => {
  const home = join(folder, "home");
  await mkdir(join(folder, "dags"));
  start(["start", "--", "--port", "0", "--home", home, "--dags", join(folder, "dags")], {});
  await until(() => output.includes("Tradewind is running"), "the start");
  const postmasterFile = join(home, "postgres", "data", "postmaster.pid");
  const { pid } = JSON.parse(await readFile(join(home, "standalone.json"), "utf8")) as { pid: number };
  postmaster = Number((await readFile(postmasterFile, "utf8")).split("\n")[0]);
  expect([pid, postmaster].map(isAlive)).toEqual([true, true]);
  expect(await terminate()).toBe(0);
  expect([pid, postmaster].map(isAlive)).toEqual([false, false]);
  // A killed PostgreSQL leaves this file.
  expect(existsSync(postmasterFile)).toBe(false);
  expect(output).toContain("Stopping (SIGTERM)…");
  expect(output).toContain("Stopped.");
}, 180_000);

it("stops a scheduler started by `npm run tradewind`, and ends its job", async () => {
  const rig = await SchedulerRig.open();
  start(["run", "-s", "tradewind", "--", "scheduler"], {
    DATABASE_URL: rig.url,
    TRADEWIND_HOME: join(folder, "home"),
  });
  await until(() => output.includes("The scheduler is running"), "the start");
  const job = adhoc("SELECT state, pid FROM job WHERE kind = 'scheduler'");
  const { pid, state } = (await rig.db.one<{ pid: number; state: string }>(job))!;
  expect([state, isAlive(pid)]).toEqual(["running", true]);
  expect(await terminate()).toBe(0);
  expect(isAlive(pid)).toBe(false);
  expect((await rig.db.one<{ state: string }>(job))?.state).not.toBe("running");
  expect(output).toContain("Stopped.");
}, 180_000);

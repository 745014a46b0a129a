import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processName } from "./process-identity.ts";

/**
 * A lock between processes of one machine that needs no cleaning up after kill -9.
 *
 * It is a folder with one entry per process that wants or has it. Who enters writes its entry first and looks for
 * others second, so of two that come at once at least one sees the other; who sees a living other withdraws and tries
 * again a little later. An entry is removed by its owner, or by anyone once its owner is dead: it is named after the
 * process's identity (number and start time), which never lives again, so that removal cannot hit a fresh lock. That
 * is the race a single lock file has.
 */
export interface ProcessLock {
  /** What others are told about the holder. */
  describe(details: Readonly<Record<string, unknown>>): Promise<void>;
  release(): Promise<void>;
}

export interface LockHolder {
  readonly pid: number;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Takes the lock, or says who has it after `waitMs` of trying. */
export async function takeProcessLock(
  folder: string,
  waitMs = 500,
): Promise<{ lock: ProcessLock } | { holder: LockHolder }> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const holder = await tryToEnter(folder);
    if (holder === undefined) return { lock: lockOn(folder) };
    if (performance.now() >= deadline) return { holder };
    // Two that met have both withdrawn: different waits let one of them through.
    await sleep(10 + Math.random() * 60);
  }
}

/** Who holds the lock now, this process excepted. */
export async function livingHolder(folder: string): Promise<LockHolder | undefined> {
  const own = processName(process.pid);
  for (const entry of await readdir(folder).catch(() => [] as string[])) {
    if (entry === own) continue;
    const path = join(folder, entry);
    const pid = Number(entry.split("-")[0]);
    if (processName(pid) === entry) return { pid, details: await readDetails(path) };
    await rm(path, { force: true });
  }
  return undefined;
}

// Within one process its entry cannot tell two holders apart.
const heldHere = new Set<string>();

async function tryToEnter(folder: string): Promise<LockHolder | undefined> {
  if (heldHere.has(folder)) return { pid: process.pid, details: {} };
  heldHere.add(folder);
  const lock = lockOn(folder);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await lock.describe({});
    const holder = await livingHolder(folder);
    if (holder !== undefined) await lock.release();
    return holder;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function lockOn(folder: string): ProcessLock {
  const own = join(folder, processName(process.pid) ?? `${process.pid}`);
  return {
    describe: (details) => writeFile(own, JSON.stringify(details), { mode: 0o600 }),
    release: async () => {
      await rm(own, { force: true });
      heldHere.delete(folder);
    },
  };
}

/** Details are for people: half written ones count as none. */
async function readDetails(path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  } catch {
    return {};
  }
}

import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processName } from "./process-identity.ts";

/**
 * A lock between processes of one machine that needs no cleanup after kill -9.
 *
 * It is a folder with one entry per process that requests or holds the lock. A process first writes its entry, then looks
 * for others, so of two concurrent processes at least one sees the other. A process that sees a living other withdraws
 * and retries a little later. An entry is removed by its owner, or by any process once its owner is dead. It is named
 * after the process's identity (id and start time), which never recurs, so the removal cannot hit a new lock. A single
 * lock file has that race.
 */
export interface ProcessLock {
  /** Details about the holder, for other processes. */
  describe(details: Readonly<Record<string, unknown>>): Promise<void>;
  release(): Promise<void>;
}

export interface LockHolder {
  readonly pid: number;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Acquires the lock, or returns its holder after `waitMs`. */
export async function acquireProcessLock(
  folder: string,
  waitMs = 500,
): Promise<{ lock: ProcessLock } | { holder: LockHolder }> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const holder = await tryToEnter(folder);
    if (holder === undefined) return { lock: lockOn(folder) };
    if (performance.now() >= deadline) return { holder };
    // Both processes of a collision have withdrawn: random waits let one of them through.
    await sleep(10 + Math.random() * 60);
  }
}

/** The current holder of the lock, this process excepted. */
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

// The entry of a process cannot distinguish two holders within it.
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

/** Details are for display: partly written ones count as none. */
async function readDetails(path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
  } catch {
    return {};
  }
}

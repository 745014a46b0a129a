/**
 * Log folders of deleted runs. `logs/<dag>/<n>` belongs to run number n of the database; once no such run exists and
 * nothing in the folder was written for long, it is deleted. Other files are left alone. Each machine cleans its own logs.
 *
 * If the process dies in the middle, the rest is found again. With two at once, a folder that is already gone is no error.
 * The number of a run is never used again, so the folder of a deleted run is never needed again.
 */
import { type Dirent, promises as fs } from "node:fs";
import { join } from "node:path";

export interface LogRetention {
  readonly folder: string;
  readonly olderThanMs: number;
  readonly dryRun: boolean;
  /** The numbers among these that belong to existing runs. */
  readonly existing: (runs: readonly number[]) => Promise<ReadonlySet<number>>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (folders: number) => void;
}

const CHUNK = 500;

/** Returns how many folders of runs it deleted, or would delete. */
export async function cleanLogs(options: LogRetention): Promise<number> {
  const { dryRun, existing, folder, olderThanMs, onProgress, signal } = options;
  const before = Date.now() - olderThanMs;
  let gone = 0;
  for (const dag of await foldersIn(folder)) {
    const runs = (await foldersIn(join(folder, dag))).filter((name) => /^[1-9]\d{0,15}$/.test(name));
    for (let at = 0; at < runs.length; at += CHUNK) {
      const chunk = runs.slice(at, at + CHUNK);
      const kept = await existing(chunk.map(Number));
      for (const run of chunk.filter((name) => !kept.has(Number(name)))) {
        if (signal?.aborted === true) return gone;
        const path = join(folder, dag, run);
        if ((await lastWritten(path)) >= before) continue;
        if (!dryRun) await fs.rm(path, { recursive: true, force: true });
        gone++;
        onProgress?.(gone);
      }
    }
    // rmdir fails while the folder is not empty.
    if (!dryRun) await fs.rmdir(join(folder, dag)).catch(() => {});
  }
  return gone;
}

async function foldersIn(path: string): Promise<string[]> {
  return (await entriesOf(path)).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

/** The time of a folder changes when files are created or deleted, that of a file when it is written. */
async function lastWritten(path: string): Promise<number> {
  const own = await fs.stat(path).catch(() => null);
  const inside = await Promise.all(
    (await entriesOf(path)).map(async (entry) => {
      const below = join(path, entry.name);
      if (entry.isDirectory()) return lastWritten(below);
      return (await fs.lstat(below).catch(() => null))?.mtimeMs ?? 0;
    }),
  );
  return inside.reduce((latest, each) => Math.max(latest, each), own?.mtimeMs ?? 0);
}

/** Empty if the folder does not exist (any more). */
async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return await fs.readdir(path, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

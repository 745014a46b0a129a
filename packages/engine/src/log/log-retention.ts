/**
 * Log folders of runs that are gone. `logs/<dag>/<n>` belongs to run number n of the database; once that has no such run
 * and nothing in the folder was written for long, it goes. Whatever does not look like that is left alone. Each machine
 * cleans its own logs.
 *
 * Dies in the middle: what is left is found again. Two at once: a folder that is gone already is no error. A run's number
 * is never used again, so a folder whose run is gone cannot become one that is needed.
 */
import { type Dirent, promises as fs } from "node:fs";
import { join } from "node:path";

export interface LogRetention {
  readonly folder: string;
  readonly olderThanMs: number;
  readonly dryRun: boolean;
  /** Those of these numbers that runs have. */
  readonly existing: (runs: readonly number[]) => Promise<ReadonlySet<number>>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (folders: number) => void;
}

const CHUNK = 500;

/** Answers how many folders of runs it deleted, or would delete. */
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
    // Fails while anything is left in it, as it must.
    if (!dryRun) await fs.rmdir(join(folder, dag)).catch(() => {});
  }
  return gone;
}

async function foldersIn(path: string): Promise<string[]> {
  return (await entriesOf(path)).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

/** A folder's own time says when a file came or went, a file's when it was written. */
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

/** Nothing when it is not there (any more). */
async function entriesOf(path: string): Promise<Dirent[]> {
  try {
    return await fs.readdir(path, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

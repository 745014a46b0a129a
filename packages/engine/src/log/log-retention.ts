/**
 * Logs of deleted runs. The folder `<dag>/<n>` belongs to run number n of the database; once no such run exists and nothing
 * in the folder was written for long, it is deleted. Everything else is left alone.
 *
 * If the process dies in the middle, the rest is found again. With two at once, a folder that is already gone is no error.
 * The number of a run is never used again, so the folder of a deleted run is never needed again.
 */
import type { LogStore } from "./log-store.ts";

export interface LogRetention {
  readonly logs: LogStore;
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
  const { dryRun, existing, logs, olderThanMs, onProgress, signal } = options;
  const before = Date.now() - olderThanMs;
  let gone = 0;
  for (const dag of await logs.folders("")) {
    const runs = (await logs.folders(dag)).filter((name) => /^[1-9]\d{0,15}$/.test(name));
    for (let at = 0; at < runs.length; at += CHUNK) {
      const chunk = runs.slice(at, at + CHUNK);
      const kept = await existing(chunk.map(Number));
      for (const run of chunk.filter((name) => !kept.has(Number(name)))) {
        if (signal?.aborted === true) return gone;
        const folder = `${dag}/${run}`;
        if ((await logs.lastWritten(folder)) >= before) continue;
        if (!dryRun) await logs.remove(folder);
        gone++;
        onProgress?.(gone);
      }
    }
  }
  return gone;
}

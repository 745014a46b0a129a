/** Retention as a whole: what the database holds, then the log files of runs that it no longer has. */
import { cleanLogs } from "../execute/log-retention.ts";
import type { Config } from "../service/config.ts";
import { logFolder } from "../service/home.ts";
import type { Database } from "../store/database.ts";
import { CLEAN_KINDS, type CleanCounts, cleanHistory } from "../store/history.ts";
import { existingRuns } from "../store/run-retention.ts";

/** What can be cleaned, in the order in which it is. */
export const CLEANABLE = [...CLEAN_KINDS, "logs"] as const;

type Cleanable = (typeof CLEANABLE)[number];

type Options = Omit<Parameters<typeof cleanHistory>[1], "only" | "onProgress"> & {
  readonly only?: readonly Cleanable[] | undefined;
  readonly onProgress?: (deleted: Readonly<Record<string, number>>) => void;
};

/** `logs`: folders of runs, on this machine. */
export async function clean(
  { config, database }: { readonly config: Config; readonly database: Database },
  { only, ...options }: Options,
): Promise<CleanCounts & { readonly logs: number }> {
  const kinds = CLEAN_KINDS.filter((kind) => only?.includes(kind) ?? true);
  const counts = await cleanHistory(database, { ...options, only: kinds });
  if (only !== undefined && !only.includes("logs")) return { ...counts, logs: 0 };
  const logs = await cleanLogs({
    folder: logFolder(config.home),
    olderThanMs: options.olderThanMs,
    dryRun: options.dryRun,
    signal: options.signal,
    existing: (runs) => existingRuns(database, runs),
    onProgress: (folders) => {
      if (!options.dryRun) options.onProgress?.({ ...counts, logs: folders });
    },
  });
  return { ...counts, logs };
}

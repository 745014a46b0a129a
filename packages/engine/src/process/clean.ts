/** Complete retention: rows of the database, then large outputs and logs of runs that no longer exist. */
import { cleanLogs } from "../log/log-retention.ts";
import { cleanOutputs, cleanScratch, UNUSED_FOR_MS } from "../output/output-retention.ts";
import type { Config } from "../service/config.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Database } from "../store/database/database.ts";
import { countUnusedObjects, listUnusedObjects, removeObjectRows } from "../store/output/output-objects.ts";
import { CLEAN_KINDS, type CleanCounts, cleanHistory } from "../store/run/history.ts";
import { existingRuns } from "../store/run/run-retention.ts";
import { createLargeOutputs } from "./parts/large-outputs.ts";
import { openLogs } from "./parts/log-store.ts";

/** What can be cleaned, in this order. */
export const CLEANABLE = [...CLEAN_KINDS, "outputs", "logs"] as const;

type Cleanable = (typeof CLEANABLE)[number];

type Options = Omit<Parameters<typeof cleanHistory>[1], "only" | "onProgress"> & {
  readonly only?: readonly Cleanable[] | undefined;
  readonly onProgress?: (deleted: Readonly<Record<string, number>>) => void;
  /** Unreferenced objects are kept this long. Default: one hour. */
  readonly unusedForMs?: number;
};

interface Place {
  readonly config: Config;
  readonly database: Database;
}

/** `outputs`: unreferenced objects of large outputs. `logs`: folders of runs in the configured log store. */
export async function clean(
  place: Place,
  { only, ...options }: Options,
): Promise<CleanCounts & { readonly outputs: number; readonly logs: number }> {
  const kinds = CLEAN_KINDS.filter((kind) => only?.includes(kind) ?? true);
  const counts = await cleanHistory(place.database, { ...options, only: kinds });
  const isWanted = (kind: Cleanable) => only?.includes(kind) ?? true;
  // A dry run treats the runs that it would delete as deleted.
  const runsOlderThanMs = options.dryRun && isWanted("runs") ? options.olderThanMs : null;
  const outputs = isWanted("outputs")
    ? await removeOutputs(place, {
        ...options,
        runsOlderThanMs,
        onProgress: (objects) => options.onProgress?.({ ...counts, outputs: objects }),
      })
    : 0;
  if (!isWanted("logs")) return { ...counts, outputs, logs: 0 };
  const store = await openLogs(place.config);
  try {
    const logs = await cleanLogs({
      logs: store,
      olderThanMs: options.olderThanMs,
      dryRun: options.dryRun,
      signal: options.signal,
      existing: (runs) => existingRuns(place.database, { ids: runs, olderThanMs: runsOlderThanMs }),
      onProgress: (folders) => {
        if (!options.dryRun) options.onProgress?.({ ...counts, outputs, logs: folders });
      },
    });
    return { ...counts, outputs, logs };
  } finally {
    await store.close();
  }
}

async function removeOutputs(
  { config, database }: Place,
  options: Omit<Options, "only" | "onProgress"> & {
    readonly onProgress: (objects: number) => void;
    readonly runsOlderThanMs: number | null;
  },
): Promise<number> {
  const { batch, dryRun, onProgress, signal, unusedForMs: olderThanMs = UNUSED_FOR_MS } = options;
  if (dryRun) {
    return await countUnusedObjects(database, { olderThanMs, runsOlderThanMs: options.runsOlderThanMs });
  }
  const outputs = createLargeOutputs(config, database);
  let unreachable: unknown = null;
  try {
    await cleanScratch(outputs.root);
    const gone = await cleanOutputs({
      batch,
      list: (after, limit) => listUnusedObjects(database, { after, limit, olderThanMs }),
      remove: (store, keys) => outputs.remove(store, keys),
      forget: (ids) => removeObjectRows(database, ids),
      signal,
      onProgress,
      onUnreachable: (_store, error) => {
        unreachable ??= error;
      },
    });
    if (gone > 0 || unreachable === null) return gone;
    throw new EngineError(
      "OUTPUTS_NOT_REMOVED",
      `Objects of large outputs could not be removed from their store: ${messageOf(unreachable)}. Their rows were kept. Run the command again to retry.`,
      { cause: unreachable },
    );
  } finally {
    await outputs.close();
  }
}

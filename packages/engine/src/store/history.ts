/**
 * Retention. Ended runs go with everything that belongs to them (foreign keys cascade); old signals, ended jobs, and
 * code that nothing refers to any more follow. In batches, each its own transaction, so that a running system hardly
 * notices. The condition stands twice in each DELETE: the inner one chooses, the outer one is asked again of a row that
 * someone changed while the DELETE waited for it, so that a run that was just cleared stays.
 */
import { CATALOGUE_LOCK } from "./dag-catalogue.ts";
import type { Connection, Database } from "./database.ts";
import {
  countDeletableSignals,
  deleteSignals,
  STALE_LISTENER_MS,
  staleListeners,
} from "./signals-retention.ts";
import { statement } from "./statement.ts";

interface CleanOptions {
  readonly olderThanMs: number;
  readonly dryRun: boolean;
  readonly batch: number;
  /** Listeners of signals that nobody has held for so long do not hold signals back; a week unless told. */
  readonly staleListenerMs?: number;
  /** Called for each such listener. */
  readonly onStaleListener?: (listener: { readonly name: string; readonly seenAt: Date }) => void;
  readonly onProgress?: (deleted: Readonly<Record<string, number>>) => void;
}

type CleanCounts = Record<"runs" | "signals" | "jobs" | "idempotency_keys" | "versions" | "bundles", number>;

interface Kind {
  readonly name: keyof CleanCounts;
  readonly count: (db: Connection, options: CleanOptions) => Promise<number>;
  /** One batch; answers how many it were. */
  readonly remove: (tx: Connection, options: CleanOptions) => Promise<number>;
  /** Publishers may be about to refer to it. */
  readonly isCatalogue: boolean;
}

/** Runs before what they refer to: jobs, versions and bundles go only when nothing points at them any more. */
const KINDS: readonly Kind[] = [
  kind(
    "runs",
    { table: "dag_run", key: "id", order: "ended_at" },
    "state IN ('success', 'failed') AND ended_at < now() - $1 * interval '1 millisecond'",
  ),
  {
    name: "signals",
    isCatalogue: false,
    count: (db, options) => countDeletableSignals(db, signalRetention(options)),
    remove: (tx, options) => deleteSignals(tx, { ...signalRetention(options), batch: options.batch }),
  },
  kind(
    "jobs",
    { table: "job", key: "id", order: "id" },
    `state <> 'running' AND ended_at < now() - $1 * interval '1 millisecond'
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM callback c WHERE c.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.standby_job = job.id)`,
  ),
  kind(
    "idempotency_keys",
    { table: "idempotency_key", key: "ctid", order: "created_at" },
    "created_at < now() - $1 * interval '1 millisecond'",
  ),
  // By when its successor came, not by its own age: whoever read it as the current one has long used it.
  kind(
    "versions",
    { table: "dag_version", key: "id", order: "id" },
    `EXISTS (SELECT 1 FROM dag_version n WHERE n.dag_id = dag_version.dag_id AND n.number > dag_version.number
               AND n.created_at < now() - $1 * interval '1 millisecond')
     AND NOT EXISTS (SELECT 1 FROM dag d WHERE d.version_id = dag_version.id)
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.version_id = dag_version.id)`,
  ),
  kind(
    "bundles",
    { table: "bundle", key: "hash", order: "created_at" },
    `created_at < now() - $1 * interval '1 millisecond'
     AND NOT EXISTS (SELECT 1 FROM dag_version v WHERE v.bundle_hash = bundle.hash)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.bundle_hash = bundle.hash)`,
  ),
];

/** Deletes, or with `dryRun` counts, what ended longer ago than `olderThanMs`. */
export async function cleanHistory(db: Database, options: CleanOptions): Promise<CleanCounts> {
  const counts: CleanCounts = { runs: 0, signals: 0, jobs: 0, idempotency_keys: 0, versions: 0, bundles: 0 };
  if (options.onStaleListener !== undefined) {
    const stale = await staleListeners(db, signalRetention(options).staleMs);
    for (const listener of stale) options.onStaleListener(listener);
  }
  for (const { name, count, remove, isCatalogue } of KINDS) {
    if (options.dryRun) {
      counts[name] = await count(db, options);
      continue;
    }
    for (;;) {
      const removed = await db.transaction(async (tx) => {
        if (isCatalogue) await tx.rows(CATALOGUE_LOCK);
        return remove(tx, options);
      });
      counts[name] += removed;
      if (removed === 0) break;
      options.onProgress?.(counts);
    }
  }
  return counts;
}

/** The order is that of an index, and the rows are then deleted by key: a batch costs the same whatever is left to do. */
function kind(
  name: keyof CleanCounts,
  { table, key, order }: { table: string; key: string; order: string },
  old: string,
): Kind {
  const count = statement(`clean-count-${name}`, `SELECT count(*) AS n FROM ${table} WHERE ${old}`);
  const remove = statement(
    `clean-remove-${name}`,
    `DELETE FROM ${table}
     WHERE ${key} = ANY(ARRAY(SELECT ${key} FROM ${table} WHERE ${old} ORDER BY ${order} LIMIT $2)) AND ${old}
     RETURNING 1`,
  );
  return {
    name,
    isCatalogue: name === "versions" || name === "bundles",
    count: async (db, { olderThanMs }) => (await db.one<{ n: number }>(count, [olderThanMs]))?.n ?? 0,
    remove: async (tx, { batch, olderThanMs }) => (await tx.rows(remove, [olderThanMs, batch])).length,
  };
}

function signalRetention({ olderThanMs, staleListenerMs = STALE_LISTENER_MS }: CleanOptions) {
  return { olderThanMs, staleMs: staleListenerMs };
}

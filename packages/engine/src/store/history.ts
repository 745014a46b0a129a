/**
 * Retention. Ended runs go with everything that belongs to them (foreign keys cascade); old signals, ended jobs, and
 * code that nothing refers to any more follow. In batches, each its own transaction, so that a running system hardly
 * notices. The condition stands twice in each DELETE: the inner one chooses, the outer one is asked again of a row that
 * someone changed while the DELETE waited for it, so that a run that was just cleared stays.
 */
import { CATALOGUE_LOCK } from "./dag-catalogue.ts";
import type { Database } from "./database.ts";
import { type Statement, statement } from "./statement.ts";

interface CleanOptions {
  readonly olderThanMs: number;
  readonly dryRun: boolean;
  readonly batch: number;
  readonly onProgress?: (deleted: Readonly<Record<string, number>>) => void;
}

type CleanCounts = Record<"runs" | "signals" | "jobs" | "idempotency_keys" | "versions" | "bundles", number>;

interface Kind {
  readonly name: keyof CleanCounts;
  readonly count: Statement;
  readonly remove: Statement;
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
  kind(
    "signals",
    { table: "signal", key: "id", order: "id" },
    "created_at < now() - $1 * interval '1 millisecond'",
  ),
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
  for (const { name, count, remove, isCatalogue } of KINDS) {
    if (options.dryRun) {
      counts[name] = (await db.one<{ n: number }>(count, [options.olderThanMs]))?.n ?? 0;
      continue;
    }
    for (;;) {
      const removed = await db.transaction(async (tx) => {
        if (isCatalogue) await tx.rows(CATALOGUE_LOCK);
        return (await tx.rows(remove, [options.olderThanMs, options.batch])).length;
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
  return {
    name,
    isCatalogue: name === "versions" || name === "bundles",
    count: statement(`clean-count-${name}`, `SELECT count(*) AS n FROM ${table} WHERE ${old}`),
    remove: statement(
      `clean-remove-${name}`,
      `DELETE FROM ${table}
       WHERE ${key} = ANY(ARRAY(SELECT ${key} FROM ${table} WHERE ${old} ORDER BY ${order} LIMIT $2)) AND ${old}
       RETURNING 1`,
    ),
  };
}

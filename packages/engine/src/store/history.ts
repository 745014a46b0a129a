/**
 * Retention. Ended runs go with everything that belongs to them (foreign keys cascade); old signals and ended jobs
 * follow. In batches, each its own transaction, so that a running system hardly notices.
 */
import type { Database } from "./database.ts";
import { type Statement, statement } from "./statement.ts";

export interface CleanOptions {
  readonly olderThanMs: number;
  readonly dryRun: boolean;
  readonly batch: number;
  readonly onProgress?: (deleted: Readonly<Record<string, number>>) => void;
}

export type CleanCounts = Record<"runs" | "signals" | "jobs" | "idempotency_keys" | "bundles", number>;

interface Kind {
  readonly name: keyof CleanCounts;
  readonly count: Statement;
  readonly remove: Statement;
}

/** Runs before what they refer to: jobs and bundles are only deleted when nothing points at them any more. */
const KINDS: readonly Kind[] = [
  kind(
    "runs",
    "dag_run",
    "id",
    "state IN ('success', 'failed') AND ended_at < now() - $1 * interval '1 millisecond'",
  ),
  kind("signals", "signal", "id", "created_at < now() - $1 * interval '1 millisecond'"),
  kind(
    "jobs",
    "job",
    "id",
    `state <> 'running' AND ended_at < now() - $1 * interval '1 millisecond'
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM callback c WHERE c.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.owner_job = job.id)`,
  ),
  kind("idempotency_keys", "idempotency_key", "ctid", "created_at < now() - $1 * interval '1 millisecond'"),
  kind(
    "bundles",
    "bundle",
    "hash",
    `created_at < now() - $1 * interval '1 millisecond'
     AND NOT EXISTS (SELECT 1 FROM dag_version v WHERE v.bundle_hash = bundle.hash)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.bundle_hash = bundle.hash)`,
  ),
];

/** Deletes, or with `dryRun` counts, what ended longer ago than `olderThanMs`. */
export async function cleanHistory(db: Database, options: CleanOptions): Promise<CleanCounts> {
  const counts: CleanCounts = { runs: 0, signals: 0, jobs: 0, idempotency_keys: 0, bundles: 0 };
  for (const { name, count, remove } of KINDS) {
    if (options.dryRun) {
      counts[name] = (await db.one<{ n: number }>(count, [options.olderThanMs]))?.n ?? 0;
      continue;
    }
    for (;;) {
      const removed = (await db.rows(remove, [options.olderThanMs, options.batch])).length;
      counts[name] += removed;
      if (removed > 0) options.onProgress?.(counts);
      if (removed < options.batch) break;
    }
  }
  return counts;
}

function kind(name: keyof CleanCounts, table: string, key: string, old: string): Kind {
  return {
    name,
    count: statement(`clean-count-${name}`, `SELECT count(*) AS n FROM ${table} WHERE ${old}`),
    remove: statement(
      `clean-remove-${name}`,
      `DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE ${old} LIMIT $2) RETURNING 1`,
    ),
  };
}

/**
 * How a scheduler that is about to stop releases its runs: another scheduler may take them over immediately, instead of
 * after its lease has expired. The same statement marks its job as draining and withdraws its free slots.
 *
 *  - Locks: its own job row, then its runs, by id, with SKIP LOCKED. Raises the generation.
 *  - Crash before the commit: no effect; its lease expires, and its runs are taken over. Crash after it: the runs have no
 *    owner, and the next scheduler that is woken, starts or sweeps takes them.
 *  - Lost reply: the former owner reads the runs again, and finds that it no longer owns them.
 *  - Concurrent calls: only the owner releases a run. A run that is being edited is locked, and is released afterwards.
 *  - Stale owner: runs that were taken over meanwhile have another owner, and are skipped.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Runs released in one transaction. */
export const RELEASE_LIMIT = 500;

const RELEASE = statement(
  "run-release",
  `WITH closed AS (
     UPDATE job SET free_slots = 0, facts = $4 WHERE id = $1 AND state = 'running'
   ), free AS (
     SELECT id FROM dag_run WHERE owner_job = $1 AND state = 'running' AND id <> ALL($2::bigint[])
     ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED
   )
   UPDATE dag_run r SET owner_job = NULL, generation = r.generation + 1 FROM free WHERE r.id = free.id
   RETURNING r.id`,
);

const RELEASE_BACKFILLS = statement(
  "backfill-release",
  "UPDATE backfill SET owner_job = NULL WHERE owner_job = $1 AND state IN ('running', 'paused')",
);

/** The drain facts in a job's row. */
export interface DrainFacts {
  readonly draining: true;
  /** When the remaining attempts are stopped. */
  readonly drain_until: string;
  /** Runs with attempts in flight. */
  readonly runs: number;
  readonly attempts: number;
}

/** Releases all runs of this job except those in `kept`, also runs that are not loaded; returns their ids. */
export async function releaseRuns(
  db: Connection,
  jobId: number,
  { facts, kept }: { readonly kept: Iterable<number>; readonly facts: DrainFacts },
): Promise<number[]> {
  const values = [jobId, [...kept], RELEASE_LIMIT, JSON.stringify(facts)];
  return (await db.rows<{ id: number }>(RELEASE, values)).map(({ id }) => id);
}

/** Another job may adopt the backfills immediately. Their running runs are released like any others. */
export async function releaseBackfills(db: Connection, jobId: number): Promise<void> {
  await db.rows(RELEASE_BACKFILLS, [jobId]);
}

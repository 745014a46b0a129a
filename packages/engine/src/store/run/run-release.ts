/**
 * How a scheduler that is about to stop releases runs: any other scheduler may take them over at once, instead of when this
 * one's lease has expired. In the same statement, its job's row says that it drains, and offers no slots any more.
 *
 *  - Locks: its own job row, then its runs, by id, passing over locked ones. Raises the generation.
 *  - Dies before: nothing happened; its lease expires, and its runs are taken over. Dies after: they have no owner. The next
 *    scheduler that is woken, starts, or sweeps takes them.
 *  - The answer is lost: the former owner reads the runs again, and finds that they are not its own.
 *  - Two at once: only the owner releases a run. A run that is being edited is locked, and is released afterwards.
 *  - Woke up late: the runs that were taken over meanwhile name another owner, and stay as they are.
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

/** What the row of a draining job says of it. */
export interface DrainFacts {
  readonly draining: true;
  /** When what still runs is asked to stop. */
  readonly drain_until: string;
  /** That still have attempts in flight. */
  readonly runs: number;
  readonly attempts: number;
}

/** Releases the runs of this job except those in `kept`, whatever it knows of them; answers their ids. */
export async function releaseRuns(
  db: Connection,
  jobId: number,
  { facts, kept }: { readonly kept: Iterable<number>; readonly facts: DrainFacts },
): Promise<number[]> {
  const values = [jobId, [...kept], RELEASE_LIMIT, JSON.stringify(facts)];
  return (await db.rows<{ id: number }>(RELEASE, values)).map(({ id }) => id);
}

/** Another job may adopt the backfills at once. Their running runs are released like any others. */
export async function releaseBackfills(db: Connection, jobId: number): Promise<void> {
  await db.rows(RELEASE_BACKFILLS, [jobId]);
}

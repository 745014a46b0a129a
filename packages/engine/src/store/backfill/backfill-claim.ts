/**
 * How a job acquires backfills and their runs.
 *
 *  - `adoptBackfill` acquires one backfill without a live owner and skips locked rows: concurrent jobs share the
 *    backfills.
 *  - `startBackfillRuns` moves queued runs of own backfills to running, within the backfill's limit. It locks the
 *    backfills first and counts in a later statement: a former owner or a change of the limit has committed, or waits.
 *  - `takeOverBackfillRuns` acquires running runs of own backfills whose owner's lease expired; the generation fences
 *    the former owner.
 *
 * Crash before the commit: no effect. Crash after it: the lease of the owner expires, `adoptBackfill` finds the
 * backfill and `takeOverBackfillRuns` its runs. Lost reply: `ownedBackfills` reports the backfills at the next sweep.
 * Concurrent calls: SKIP LOCKED on the backfill; only its owner reads the runs. Stale owner: every statement requires
 * the job as the backfill's owner, and matches no row.
 */
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed, type ServedDags } from "../job/served-dags.ts";
import {
  CLAIM_TASKS,
  type ClaimedRun,
  chosenOf,
  insertInstances,
  type StartRequest,
  startChosen,
  takeOrphans,
} from "../run/run-claim.ts";

const IS_FREE = `b.state IN ('running', 'paused') AND (b.owner_job IS NULL OR NOT EXISTS (
    SELECT 1 FROM job j WHERE j.id = b.owner_job AND j.state = 'running' AND j.lease_until > now()))`;

const ANY_FREE = statement(
  "backfill-any-free",
  `SELECT 1 FROM backfill b WHERE ${IS_FREE} AND ${isServed("b.dag_id", "$1")} LIMIT 1`,
);

/**
 * $2: number of backfills this job owns. A new backfill is reserved for that many seconds for jobs that own fewer. $3:
 * whether a backfill whose owner's lease expired may be acquired.
 */
const ADOPT = statement(
  "backfill-adopt",
  `WITH free AS (
     SELECT b.id FROM backfill b
     WHERE ${IS_FREE} AND (b.owner_job IS NULL OR $3::boolean) AND ${isServed("b.dag_id", "$4")}
       AND (b.owner_job IS NOT NULL OR b.created_at <= now() - $2 * interval '1 second')
     ORDER BY b.id LIMIT 1
     FOR NO KEY UPDATE SKIP LOCKED
   )
   UPDATE backfill b SET owner_job = $1 FROM free WHERE b.id = free.id RETURNING b.id, b.dag_id`,
);

const OWNED = statement(
  "backfill-owned",
  "SELECT id FROM backfill WHERE owner_job = $1 AND state IN ('running', 'paused')",
);

/**
 * For transactions of several round trips that lock a backfill: a process that stalls inside one loses its session
 * before its lease expires, so that the lock does not delay the takeover.
 */
export const SHORT_BREATH = "set_config('idle_in_transaction_session_timeout', '3000', true)";

/** A backfill that is ending has ended its queued runs; a run that is queued now was cleared by a user afterwards. */
const LOCK_OWN = statement(
  "backfill-lock-own",
  `SELECT b.id, ${SHORT_BREATH} FROM backfill b JOIN dag d ON d.dag_id = b.dag_id
   WHERE b.owner_job = $1 AND (b.state = 'running' OR b.ending IS NOT NULL AND b.state = 'paused') AND NOT d.is_paused
   ORDER BY b.id FOR NO KEY UPDATE OF b`,
);

/** A cleared date comes before later dates, which may depend on it. */
const START = statement(
  "backfill-start-runs",
  `WITH room AS (
     SELECT b.id, b.is_reverse, b.max_active
              - (SELECT count(*) FROM dag_run a WHERE a.backfill_id = b.id AND a.state = 'running') AS free
     FROM backfill b WHERE b.id = ANY($2)
   ), next AS (
     SELECT q.id, q.queued_at, v.task_count
     FROM room CROSS JOIN LATERAL (
       SELECT r.id, r.queued_at, r.version_id FROM dag_run r
       WHERE r.backfill_id = room.id AND r.state = 'queued' AND r.run_after <= now()
       ORDER BY CASE WHEN NOT room.is_reverse THEN r.logical_date END, r.queued_at, r.id
       LIMIT least(greatest(room.free, 0), $3)
     ) q JOIN dag_version v ON v.id = q.version_id
     ORDER BY q.queued_at, q.id LIMIT $3
   ), ${chosenOf("next", "queued_at")}, ${startChosen("r.backfill_id")}`,
);

/** Locks the backfill, too: a former owner takes no run after the new owner has begun. */
const TAKE_OVER = statement(
  "backfill-take-over-runs",
  `WITH own AS (
     SELECT b.id FROM backfill b WHERE b.owner_job = $1 AND b.state IN ('running', 'paused') ORDER BY b.id FOR SHARE
   ), orphan AS (
     SELECT r.id, v.task_count
     FROM own JOIN dag_run r ON r.backfill_id = own.id JOIN dag_version v ON v.id = r.version_id
       LEFT JOIN job j ON j.id = r.owner_job
     WHERE r.state = 'running' AND (j.id IS NULL OR j.state <> 'running' OR j.lease_until <= now())
     ORDER BY r.id LIMIT $2
     FOR UPDATE OF r SKIP LOCKED
   ), ${takeOrphans()}`,
);

/** Whether there is a backfill that no live job owns. */
export async function hasFreeBackfill(db: Connection, dags: ServedDags = null): Promise<boolean> {
  return (await db.one(ANY_FREE, [dags])) !== undefined;
}

/** Acquires one backfill, if any is free. `mayJudge` false: only a backfill that never had an owner. */
export function adoptBackfill(
  db: Connection,
  by: {
    readonly jobId: number;
    readonly has: number;
    readonly mayJudge: boolean;
    readonly dags?: ServedDags;
  },
): Promise<{ readonly id: number; readonly dag_id: string } | undefined> {
  return db.one(ADOPT, [by.jobId, by.has, by.mayJudge, by.dags ?? null]);
}

export async function ownedBackfills(db: Connection, jobId: number): Promise<number[]> {
  return (await db.rows<{ id: number }>(OWNED, [jobId])).map((row) => row.id);
}

export function startBackfillRuns(db: Database, request: StartRequest): Promise<ClaimedRun[]> {
  return db.transaction(async (tx) => {
    const own = await tx.rows<{ id: number }>(LOCK_OWN, [request.jobId]);
    if (own.length === 0) return [];
    const runs = await tx.rows<ClaimedRun>(START, [
      request.jobId,
      own.map((backfill) => backfill.id),
      request.limit,
      CLAIM_TASKS,
    ]);
    await insertInstances(tx, runs, request);
    return runs;
  });
}

export function takeOverBackfillRuns(db: Connection, jobId: number, limit: number): Promise<ClaimedRun[]> {
  return db.rows<ClaimedRun>(TAKE_OVER, [jobId, limit, CLAIM_TASKS]);
}

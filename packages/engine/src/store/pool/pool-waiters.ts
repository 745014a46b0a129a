/**
 * The best task that each scheduler cannot queue for lack of slots, per pool and width, visible to the others. A
 * scheduler that is about to take slots leaves room for better tasks of other schedulers, and wakes them. Only a hint: a
 * pool cannot be oversubscribed without it. The rows of a dead scheduler are ignored.
 */
import type { Call, Connection } from "../database/database.ts";
import { call, statement } from "../database/statement.ts";

export interface PoolWaiter {
  readonly pool: string;
  readonly weight: number;
  /** Milliseconds. */
  readonly logicalDate: number | null;
  readonly mapIndex: number;
  readonly slots: number;
  /** The number of waiting tasks of this width, of which this is the best; at most the size of the pool. */
  readonly amount: number;
}

const PUBLISH = statement(
  "waiters-publish",
  `WITH gone AS (
     DELETE FROM pool_waiter WHERE job_id = $1
       AND (pool, slots) NOT IN (SELECT u.pool, u.slots FROM unnest($2::text[], $6::int[]) AS u(pool, slots)))
   INSERT INTO pool_waiter (job_id, pool, priority_weight, logical_date, map_index, slots, amount)
   SELECT $1, u.pool, u.weight, to_timestamp(u.logical / 1000), u.map, u.slots, u.amount
   FROM unnest($2::text[], $3::int[], $4::float8[], $5::int[], $6::int[], $7::int[])
     AS u(pool, weight, logical, map, slots, amount)
   JOIN pool p ON p.name = u.pool
   ON CONFLICT (pool, job_id, slots) DO UPDATE SET priority_weight = EXCLUDED.priority_weight,
     logical_date = EXCLUDED.logical_date, map_index = EXCLUDED.map_index, amount = EXCLUDED.amount`,
);

const OTHERS = statement(
  "waiters-of-others",
  `SELECT w.pool, w.priority_weight AS weight, (extract(epoch FROM w.logical_date) * 1000)::float8 AS "logicalDate",
          w.map_index AS "mapIndex", w.slots, w.amount
   FROM pool_waiter w JOIN job j ON j.id = w.job_id
   WHERE w.job_id <> $1 AND j.state = 'running' AND j.lease_until > now()`,
);

export function publishWaiters(jobId: number, waiters: readonly PoolWaiter[]): Call {
  return call(
    PUBLISH,
    jobId,
    waiters.map((w) => w.pool),
    waiters.map((w) => w.weight),
    waiters.map((w) => w.logicalDate),
    waiters.map((w) => w.mapIndex),
    waiters.map((w) => w.slots),
    waiters.map((w) => w.amount),
  );
}

export function waitersOfOthers(db: Connection, jobId: number): Promise<PoolWaiter[]> {
  return db.rows<PoolWaiter>(OTHERS, [jobId]);
}

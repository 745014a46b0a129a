/**
 * What users do with workers. Both statements lock the worker's row, so a claim comes before them, and is included, or after
 * them, and sees them.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

const DRAIN = statement(
  "worker-drain",
  `UPDATE job SET is_draining = $2
   WHERE id = $1 AND kind = 'worker' AND state = 'running' AND lease_until > now() RETURNING id`,
);

/** False: there is no such live worker. Its next heartbeat returns the change. */
export async function drainWorker(db: Connection, id: number, isDraining: boolean): Promise<boolean> {
  return (await db.one(DRAIN, [id, isDraining])) !== undefined;
}

const REMOVE = statement(
  "worker-remove",
  `UPDATE job SET state = 'dead', ended_at = now(), lease_until = now(),
     facts = (coalesce(facts::jsonb, '{}') || '{"removed": true}')::json
   WHERE id = $1 AND kind = 'worker' AND state = 'running'
   RETURNING id, pg_notify('tradewind', 'jobs')`,
);

/** A statement of its own: it must see all claims that were committed before the worker's row was locked. */
const LOSE = statement(
  "worker-lose",
  `WITH lost AS (
     INSERT INTO report (assignment_id, type, content, at)
     SELECT a.id, 'ended', json_build_object('lost', format('its worker %s on %s was removed', j.name, j.hostname)), now()
     FROM assignment a JOIN job j ON j.id = a.worker_job WHERE j.id = $1
     ON CONFLICT (assignment_id, type) DO NOTHING RETURNING assignment_id
   )
   SELECT assignment_id, pg_notify('tradewind', 'reports') FROM lost`,
);

/**
 * Ends a worker that may still run: what it has is lost, and starts elsewhere. Returns the number of lost assignments; null:
 * it had ended already.
 */
export async function removeWorker(db: Connection, id: number): Promise<number | null> {
  if ((await db.one(REMOVE, [id])) === undefined) return null;
  return (await db.rows(LOSE, [id])).length;
}

const IS_REMOVED = statement(
  "worker-is-removed",
  "SELECT EXISTS (SELECT FROM job WHERE id = $1 AND facts->>'removed' = 'true') AS is_removed",
);

/** Whether a user has removed the worker: then it must not register again. */
export async function isWorkerRemoved(db: Connection, id: number): Promise<boolean> {
  return (await db.one<{ is_removed: boolean }>(IS_REMOVED, [id]))?.is_removed === true;
}

/** The stored occupancy of pools. */
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface PoolView {
  readonly name: string;
  readonly slots: number;
  readonly occupied: number;
  readonly include_deferred: boolean;
}

const POOLS = statement("pools-view", "SELECT name, slots, occupied, include_deferred FROM pool");

const LOCK_ALL_POOLS = statement("pools-lock-all", "SELECT name FROM pool ORDER BY name FOR NO KEY UPDATE");

const RECOUNT = statement(
  "pools-recount",
  `UPDATE pool p SET occupied = (
     SELECT coalesce(sum(CASE WHEN t.pool = p.name THEN t.pool_slots ELSE 1 END), 0)
     FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id
     WHERE r.state = 'running'
       AND (t.state IN ('queued', 'running', 'restarting') OR t.state = 'deferred' AND t.keeps_slot)
       AND (t.pool = p.name OR p.name = ANY(string_to_array(t.limit_key, E'\\n'))))`,
);

export function readPools(db: Connection): Promise<PoolView[]> {
  return db.rows<PoolView>(POOLS);
}

/**
 * Recounts occupied slots from task states. Only for a wrong count, which is a defect: the pools are locked, so no slot
 * can change meanwhile.
 */
export async function recountPools(db: Database): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.rows(LOCK_ALL_POOLS);
    await tx.rows(RECOUNT);
  });
}

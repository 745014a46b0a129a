/** The task instances that occupy slots of a pool, or of a limit that the engine counts like a pool. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type PlacedInstance, withMapPlaces } from "../list/map-places.ts";

export interface PoolHolder extends PlacedInstance {
  readonly state: string;
  readonly slots: number;
}

/** The same conditions as in `pools-recount`. Index: the running runs. */
const HOLDERS = statement(
  "pool-holders",
  `SELECT r.id AS dag_run_id, r.version_id, r.dag_id, r.run_id, t.task_id, t.map_index, t.state,
     CASE WHEN t.pool = $1 THEN t.pool_slots ELSE 1 END AS slots, count(*) OVER ()::int AS total
   FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id
   WHERE r.state = 'running'
     AND (t.state IN ('queued', 'running', 'restarting') OR t.state = 'deferred' AND t.keeps_slot)
     AND (t.pool = $1 OR $1 = ANY(string_to_array(t.limit_key, E'\\n')))
   ORDER BY t.started_at NULLS LAST, r.id, t.task_id, t.map_index LIMIT $2`,
);

/** The `limit` instances that started first, and the total. */
export async function readPoolHolders(
  connection: Connection,
  pool: string,
  limit: number,
): Promise<{ readonly holders: readonly PoolHolder[]; readonly total: number }> {
  const rows = await connection.rows<Omit<PoolHolder, "place"> & { readonly total: number }>(HOLDERS, [
    pool,
    limit,
  ]);
  return { holders: await withMapPlaces(connection, rows), total: rows[0]?.total ?? 0 };
}

/**
 * Queued asset events: the events that a schedule has gathered for its next run, and the events after its position, for
 * example while the DAG is paused.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { startNow } from "../signal/signals-position.ts";

export interface QueuedEvents {
  readonly dag_id: string;
  readonly asset_id: number;
  readonly uri: string;
  readonly events: number;
  /** When the first of them was created. */
  readonly created_at: Date;
}

/** SQL: ids of the events that schedules have gathered for a run. They are stored in these rows only. */
export const GATHERED_EVENTS = `SELECT (found.id #>> '{}')::bigint FROM signal_listener l
     CROSS JOIN LATERAL jsonb_path_query(l.state::jsonb, '$.groups[*][1].events[*]') AS found(id)
     WHERE l.schedule->'gather' IS NOT NULL AND l.state IS NOT NULL`;

/** Index: signal_position. Reads only the signals after the schedules' positions. */
const LIST = statement(
  "asset-queue-list",
  `WITH listening AS (
     SELECT l.dag_id, l.tx, l.signal_id, l.after_version, l.state FROM signal_listener l
     WHERE l.schedule->'gather' IS NOT NULL AND ($1::text IS NULL OR l.dag_id = $1)
   ), waiting AS (
     SELECT l.dag_id, (found.id #>> '{}')::bigint AS id FROM listening l
     CROSS JOIN LATERAL jsonb_path_query(l.state::jsonb, '$.groups[*][1].events[*]') AS found(id)
     UNION
     SELECT l.dag_id, e.id FROM listening l
     JOIN signal s ON (s.tx, s.id) > (l.tx, l.signal_id) AND s.namespace = 'asset'
       AND (l.after_version IS NULL OR s.id > l.after_version)
     JOIN asset_event e ON e.id = s.id
     WHERE EXISTS (SELECT 1 FROM asset_use u LEFT JOIN asset_alias n ON n.id = u.alias_id
                   WHERE u.dag_id = l.dag_id AND u.kind = 'schedule' AND (u.asset_id = e.asset_id OR n.name = e.alias))
   )
   SELECT w.dag_id, a.id AS asset_id, a.uri, count(*) AS events, min(e.created_at) AS created_at
   FROM waiting w JOIN asset_event e ON e.id = w.id JOIN asset a ON a.id = e.asset_id
   WHERE ($2::bigint IS NULL OR a.id = $2) AND ($3::timestamptz IS NULL OR e.created_at < $3)
   GROUP BY w.dag_id, a.id ORDER BY w.dag_id, a.id`,
);

/** Sets a new revision, so that a triggerer cannot store a result computed from the previous state. */
const FORGET = statement(
  "asset-queue-forget",
  `UPDATE signal_listener SET tx = $2::xid8, signal_id = $3, after_version = $4, state = NULL,
                              revision = gen_random_uuid(), updated_at = now()
   WHERE dag_id = $1 AND schedule->'gather' IS NOT NULL RETURNING 1`,
);

export function listQueued(
  db: Connection,
  filter: { readonly dagId?: string; readonly assetId?: number; readonly before?: Date | undefined },
): Promise<QueuedEvents[]> {
  return db.rows<QueuedEvents>(LIST, [filter.dagId ?? null, filter.assetId ?? null, filter.before ?? null]);
}

/** Drops all queued events; later events count. Returns whether the DAG is scheduled on assets. */
export async function forgetQueued(tx: Connection, dagId: string): Promise<boolean> {
  const { afterVersion, position } = await startNow(tx);
  return (await tx.rows(FORGET, [dagId, position.tx, position.id, afterVersion])).length > 0;
}

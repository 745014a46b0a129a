/** The services of the installation, and how far they have fallen behind, for /metrics. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

const KINDS = ["api", "backfill", "dag_processor", "driver", "scheduler", "triggerer", "worker"] as const;

export interface ComponentCount {
  readonly kind: string;
  /** With a valid lease. */
  readonly alive: number;
  /** Seconds since the oldest last heartbeat of those that have not ended; 0: there are none. */
  readonly heartbeat_age: number;
}

const COMPONENTS = statement(
  "metrics-components",
  `SELECT k.kind, (count(j.id) FILTER (WHERE j.lease_until > now()))::int AS alive,
     coalesce(max(extract(epoch FROM now() - j.heartbeat_at)), 0)::float8 AS heartbeat_age
   FROM unnest($1::text[]) AS k(kind) LEFT JOIN job j ON j.kind = k.kind AND j.state = 'running'
   GROUP BY k.kind ORDER BY k.kind`,
);

/** Every kind, also those without a service. */
export function componentCounts(connection: Connection): Promise<ComponentCount[]> {
  return connection.rows(COMPONENTS, [KINDS]);
}

export interface TriggerCount {
  readonly queue: string;
  readonly triggers: number;
}

const TRIGGERS = statement("metrics-triggers", "SELECT queue, triggers FROM trigger_depth ORDER BY queue");

export function triggerCounts(connection: Connection): Promise<TriggerCount[]> {
  return connection.rows(TRIGGERS);
}

/**
 * All readers follow one log, so the signal after the lowest position is the oldest one that some reader has not processed.
 * Index: signal_position.
 */
const UNREAD = statement(
  "metrics-unread-signals",
  `SELECT greatest(0, extract(epoch FROM now() - s.created_at))::float8 AS age FROM (
     SELECT l.tx, l.signal_id FROM signal_listener l LEFT JOIN dag d ON d.dag_id = l.dag_id
     WHERE l.lease_until > now() AND d.is_paused IS NOT TRUE AND d.is_stale IS NOT TRUE
     ORDER BY l.tx, l.signal_id LIMIT 1) l
   CROSS JOIN LATERAL (SELECT created_at FROM signal
     WHERE (tx, id) > (l.tx, l.signal_id) ORDER BY tx, id LIMIT 1) s`,
);

/** Seconds since the oldest signal that an active listener, or the schedule of a DAG, has not processed; 0: there is none. */
export async function unreadSignalAge(connection: Connection): Promise<number> {
  return (await connection.one<{ age: number }>(UNREAD))?.age ?? 0;
}

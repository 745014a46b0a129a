/** Current waits by what they wait for: one group per kind of trigger, and per name of a signal. */
import { SIGNAL_KIND } from "../../model/trigger/engine-kinds.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { waitedSignal } from "../list/waited-signal.ts";

interface WaitGroupRow {
  readonly kind: string;
  /** `namespace/key`; null: not a wait for a signal. */
  readonly signal: string | null;
  readonly waiting: number;
  readonly since: Date;
  readonly timeout_at: Date | null;
}

export interface WaitGroups {
  /** The largest first. */
  readonly groups: readonly WaitGroupRow[];
  /** Including those that are not listed. */
  readonly totalGroups: number;
  readonly totalWaiting: number;
  /** There are more waits than one query reads. */
  readonly isPartial: boolean;
}

interface Row extends WaitGroupRow {
  readonly total_groups: number;
  readonly total_waiting: number;
}

/** Waits that one query reads, and groups that it returns. */
const MOST_SCANNED = 50_000;
const MOST_GROUPS = 200;

/**
 * Index: deferral_since. Equal waits share a trigger: its name is read once. A subquery, because a join would scan all
 * triggers.
 */
const GROUPS = statement(
  "ui-wait-groups",
  `WITH scanned AS MATERIALIZED (
     SELECT d.waits_on, d.kind, d.deferred_at, d.timeout_at FROM deferral d
     WHERE d.waits_on IS NOT NULL
       AND ($1::text IS NULL OR EXISTS (SELECT FROM dag_run r WHERE r.id = d.dag_run_id AND r.dag_id = $1))
     ORDER BY d.deferred_at LIMIT ${MOST_SCANNED + 1}
   ), shared AS MATERIALIZED (
     SELECT waits_on, kind, count(*) AS waiting, min(deferred_at) AS since, min(timeout_at) AS timeout_at
     FROM scanned GROUP BY waits_on, kind
   ), named AS MATERIALIZED (
     SELECT s.*, CASE WHEN s.kind = '${SIGNAL_KIND}'
       THEN (SELECT ${waitedSignal("g")} FROM trigger g WHERE g.id = s.waits_on) END AS signal FROM shared s
   )
   SELECT kind, signal, sum(waiting)::int8 AS waiting, min(since) AS since, min(timeout_at) AS timeout_at,
     count(*) OVER () AS total_groups, (sum(sum(waiting)) OVER ())::int8 AS total_waiting
   FROM named GROUP BY kind, signal ORDER BY waiting DESC, since, kind, signal LIMIT ${MOST_GROUPS}`,
);

/** Counts the waits that began first; `dagId`: only those of this DAG. */
export async function waitGroups(connection: Connection, dagId: string | null): Promise<WaitGroups> {
  const rows = await connection.rows<Row>(GROUPS, [dagId]);
  const waiting = rows[0]?.total_waiting ?? 0;
  return {
    groups: rows,
    totalGroups: rows[0]?.total_groups ?? 0,
    totalWaiting: Math.min(waiting, MOST_SCANNED),
    isPartial: waiting > MOST_SCANNED,
  };
}

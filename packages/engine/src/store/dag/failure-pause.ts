/**
 * Pauses a DAG after consecutive failures of scheduled runs (`pauseAfterFailures`).
 *
 * The pause is not part of the transaction that stores the last failure, but follows it in a separate one. The first is
 * a batch of many runs and holds pool slots, while publishing and planning lock the DAG's row first and slots
 * afterwards. This transaction locks the DAG's row only.
 *
 * Crash between the two: the check is repeated, under the same lock, before the DAG's next scheduled run is created
 * (due-runs.ts). Crash after the commit: pause, reason, audit event and signal are stored together. Lost reply,
 * concurrent or late calls: a paused DAG is skipped, and the failures of an unpaused DAG count from the moment it was
 * unpaused.
 */
import { failingReason } from "../../model/index.ts";
import { recordAudit } from "../access/audit.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

const LOCK = statement(
  "failure-pause-lock",
  `SELECT d.dag_id, (v.manifest->>'pauseAfterFailures')::int AS "limit"
   FROM dag d JOIN dag_version v ON v.id = d.version_id
   WHERE d.dag_id = $1 AND NOT d.is_paused FOR NO KEY UPDATE OF d`,
);

/**
 * The newest scheduled runs that have ended, by logical date. Reads a bounded number of runs by the unique index on
 * (dag, logical date): neither a long history nor manual runs in between make it slower.
 */
const ENDED = statement(
  "failure-pause-ended",
  `SELECT u.dag AS dag_id, r.run_id, r.state FROM unnest($1::text[], $2::int[]) AS u(dag, most)
   CROSS JOIN LATERAL (
     SELECT n.run_id, n.state, n.logical_date FROM (
       SELECT x.run_id, x.state, x.run_type, x.ended_at, x.logical_date FROM dag_run x
       WHERE x.dag_id = u.dag AND x.logical_date IS NOT NULL ORDER BY x.logical_date DESC LIMIT u.most + 500) AS n
     WHERE n.run_type = 'scheduled' AND n.state IN ('success', 'failed')
       AND n.ended_at > coalesce((SELECT failures_since FROM dag WHERE dag_id = u.dag), '-infinity')
     ORDER BY n.logical_date DESC LIMIT u.most) AS r
   ORDER BY u.dag, r.logical_date DESC`,
);

const PAUSE = statement(
  "failure-pause-set",
  `UPDATE dag d SET is_paused = true, pause_reason = u.reason FROM unnest($1::text[], $2::text[]) AS u(dag, reason)
   WHERE d.dag_id = u.dag`,
);

/** A DAG with a limit that is not paused and whose row is locked. */
export interface LimitedDag {
  readonly dagId: string;
  readonly limit: number;
}

/** Pauses those of these DAGs that have failed too often, and returns their ids. */
export async function pauseFailing(tx: Connection, dags: readonly LimitedDag[]): Promise<string[]> {
  if (dags.length === 0) return [];
  const rows = await tx.rows<{ dag_id: string; run_id: string; state: string }>(ENDED, [
    dags.map(({ dagId }) => dagId),
    dags.map(({ limit }) => limit),
  ]);
  const ended = Map.groupBy(rows, (row) => row.dag_id);
  const failing = dags.flatMap(({ dagId, limit }) => {
    const reason = failingReason(ended.get(dagId) ?? [], limit);
    return reason === null ? [] : [{ dagId, reason }];
  });
  if (failing.length === 0) return [];
  const dagIds = failing.map(({ dagId }) => dagId);
  await tx.rows(PAUSE, [dagIds, failing.map(({ reason }) => reason)]);
  return dagIds;
}

/** Called in the transaction that paused them, as its last step. */
export async function publishPaused(tx: Connection, dagIds: readonly string[]): Promise<void> {
  if (dagIds.length === 0) return;
  const deed = { action: "pause_dag", actor: "engine" } as const;
  const details = { reason: "pauseAfterFailures" };
  const [first, ...rest] = dagIds;
  if (first !== undefined && rest.length === 0) await recordAudit(tx, { ...deed, dagId: first, details });
  else await recordAudit(tx, { ...deed, about: dagIds, details: { ...details, dag_ids: [...dagIds] } });
}

/** Called after a run of the DAG has ended. Returns whether the DAG was paused. */
export function pauseAfterFailures(db: Database, dagId: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const dag = await tx.one<{ dag_id: string; limit: number | null }>(LOCK, [dagId]);
    if (dag === undefined || dag.limit === null) return false;
    const paused = await pauseFailing(tx, [{ dagId, limit: dag.limit }]);
    await publishPaused(tx, paused);
    return paused.length > 0;
  });
}

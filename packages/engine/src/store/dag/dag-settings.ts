/** User settings of a DAG: pause, unpause, delete. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Returns the DAGs of `dagIds` whose setting changed. */
export async function setPaused(
  tx: Connection,
  dagIds: readonly string[],
  paused: boolean,
): Promise<string[]> {
  const rows = await tx.rows<{ dag_id: string }>(SET_PAUSED, [[...dagIds], paused]);
  return rows.map((row) => row.dag_id);
}

/**
 * Deletes a DAG with its versions, runs and outputs. Refused while a run is unfinished: its tasks hold pool slots. The
 * row lock prevents schedulers, which lock the DAG before they start a run, from starting one meanwhile.
 */
export async function deleteDag(tx: Connection, dagId: string): Promise<"deleted" | "active" | "not_found"> {
  const dag = await tx.one(LOCK_DAG, [dagId]);
  if (dag === undefined) return "not_found";
  if ((await tx.one(FIND_UNFINISHED, [dagId])) !== undefined) return "active";
  await tx.rows(DELETE_DAG, [dagId]);
  return "deleted";
}

/** Unpausing resets the count of failures. */
const SET_PAUSED = statement(
  "dag-set-paused",
  `UPDATE dag SET is_paused = $2, pause_reason = NULL, failures_since = CASE WHEN $2 THEN failures_since ELSE now() END
   WHERE dag_id = ANY($1) AND is_paused <> $2 RETURNING dag_id`,
);

const LOCK_DAG = statement("dag-lock", "SELECT dag_id FROM dag WHERE dag_id = $1 FOR UPDATE");

/**
 * One subquery per state, matching the partial indexes: with both states in one condition, PostgreSQL scans all runs of
 * the DAG.
 */
const FIND_UNFINISHED = statement(
  "dag-find-unfinished",
  `SELECT 1 WHERE EXISTS (SELECT 1 FROM dag_run WHERE dag_id = $1 AND state = 'queued')
               OR EXISTS (SELECT 1 FROM dag_run WHERE dag_id = $1 AND state = 'running')`,
);

const DELETE_DAG = statement("dag-delete", "DELETE FROM dag WHERE dag_id = $1");

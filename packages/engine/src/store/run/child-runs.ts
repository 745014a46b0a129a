/**
 * Runs created by tasks. Each references its parent: the instance that created it. The run of a sub-DAG is also part of
 * one try of that instance, and ends with the try.
 *
 * Creation: the parent's run is locked against edits, and its attempt must be the current one. An edit that ends the
 * attempt commits before, and no run is created; or after, and the run is found as abandoned. Crash before the commit:
 * the try is repeated and creates the run. Crash after it, or a lost reply: the repeated try finds the run by its id.
 *
 * Abandoned runs are found from the rows alone, however the try ended: cancelled, cleared, timed out, deleted. A try
 * never comes back, so an abandoned run stays abandoned: of two schedulers that find it, one cancels it.
 */
import type { Connection, Transaction } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { AttemptKey } from "../task/journal.ts";

/** The task that created a run. */
export interface ParentPlace {
  readonly dagRunId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  /** For a sub-DAG. */
  readonly tryNumber: number | null;
}

/** The columns of a run that reference its parent. */
export function parentColumns(parent: ParentPlace | undefined): unknown[] {
  if (parent === undefined) return [null, null, null, null];
  return [parent.dagRunId, parent.taskId, parent.mapIndex, parent.tryNumber];
}

export interface ParentRun {
  readonly dag_id: string;
  readonly run_id: string;
  readonly interval_start: Date | null;
  readonly interval_end: Date | null;
}

const LOCK_PARENT = statement(
  "child-lock-parent",
  `SELECT dag_id, run_id, interval_start, interval_end FROM dag_run WHERE id = $1 FOR KEY SHARE`,
);

/** FOR SHARE: see journal.ts. */
const LOCK_ATTEMPT = statement(
  "child-lock-attempt",
  `SELECT 1 FROM task_instance
   WHERE dag_run_id = $1 AND task_id = $2 AND map_index = $3 AND attempt = $4 AND state IN ('queued', 'running')
   FOR SHARE`,
);

/** The run of the current attempt, locked against edits until the transaction ends; undefined: not the current one. */
export async function lockParent(tx: Transaction, by: AttemptKey): Promise<ParentRun | undefined> {
  const run = await tx.one<ParentRun>(LOCK_PARENT, [by.runId]);
  if (run === undefined) return undefined;
  const mine = await tx.one(LOCK_ATTEMPT, [by.runId, by.taskId, by.mapIndex, by.attempt]);
  return mine === undefined ? undefined : run;
}

/** Follows sub-DAGs only. */
const AROUND = statement(
  "child-dags-around",
  `WITH RECURSIVE above(dag_id, up, level) AS (
     SELECT dag_id, CASE WHEN parent_try IS NOT NULL THEN parent_run_id END, 0 FROM dag_run WHERE id = $1
     UNION ALL
     SELECT r.dag_id, CASE WHEN r.parent_try IS NOT NULL THEN r.parent_run_id END, a.level + 1
     FROM above a JOIN dag_run r ON r.id = a.up
   ) SELECT dag_id FROM above ORDER BY level DESC`,
);

/** The DAGs that contain a run, outermost first, and its own. */
export async function dagsAround(tx: Connection, dagRunId: number): Promise<string[]> {
  return (await tx.rows<{ dag_id: string }>(AROUND, [dagRunId])).map((row) => row.dag_id);
}

export interface AbandonedRun {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly parent_task_id: string;
  /** null: the parent is deleted. */
  readonly parent_dag: string | null;
  readonly parent_run: string | null;
}

/** Index: dag_run_sub_dag. */
const ABANDONED = statement(
  "child-find-abandoned",
  `SELECT c.id, c.dag_id, c.run_id, c.parent_task_id, p.dag_id AS parent_dag, p.run_id AS parent_run
   FROM dag_run c LEFT JOIN dag_run p ON p.id = c.parent_run_id
   LEFT JOIN task_instance t
     ON t.dag_run_id = c.parent_run_id AND t.task_id = c.parent_task_id AND t.map_index = c.parent_map_index
   WHERE c.parent_try IS NOT NULL AND c.state IN ('queued', 'running') AND c.ending IS NULL
     AND (p.state = 'running' AND t.try_number = c.parent_try
          AND t.state IN ('scheduled', 'queued', 'running', 'deferred', 'up_for_reschedule')) IS NOT TRUE
   ORDER BY c.id LIMIT $1`,
);

/** Runs of sub-DAGs whose try has ended; without runs that were ended and still run teardowns. */
export function abandonedRuns(db: Connection, limit: number): Promise<AbandonedRun[]> {
  return db.rows<AbandonedRun>(ABANDONED, [limit]);
}

export interface TaskStanding {
  readonly dag_run_id: number;
  readonly run_state: string;
  readonly task_id: string | null;
  /** The states of its instances, without removed ones. */
  readonly states: readonly string[];
}

const STANDING = statement(
  "child-standing",
  `SELECT r.id AS dag_run_id, r.state AS run_state, u.task AS task_id,
          array(SELECT DISTINCT t.state FROM task_instance t
                WHERE t.dag_run_id = r.id AND t.task_id = u.task AND t.state <> 'removed') AS states
   FROM dag_run r LEFT JOIN unnest($3::text[]) AS u(task) ON true
   WHERE r.dag_id = $1 AND r.run_id = $2`,
);

/** One row per task, or one without a task if none is requested; no rows: no such run. */
export function readStanding(
  db: Connection,
  of: { readonly dagId: string; readonly runId: string; readonly tasks: readonly string[] },
): Promise<TaskStanding[]> {
  return db.rows<TaskStanding>(STANDING, [of.dagId, of.runId, of.tasks]);
}

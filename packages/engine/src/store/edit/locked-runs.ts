/**
 * Manual edits run under the lock of their runs. Each edit locks its runs (FOR UPDATE, by id), judges their states,
 * changes them, and raises their generation: the owner's next write is rejected with TW001, and the owner reloads the run.
 * An owner's batch that committed before the lock is what the edit reads; there is no third order.
 *
 * The API resolves names, graph closures and date ranges. Its transaction also carries the audit row and the idempotency
 * key: an edit is done, recorded and answerable again, or it never happened. A dry run changes nothing and returns what
 * the edit would have changed.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { publishRuns } from "../task/state-signals.ts";
import type { RunSelection } from "./edited-instances.ts";

const LOCK_RUNS = statement(
  "edit-lock-runs",
  "SELECT id, dag_id, state, ending, version_id FROM dag_run WHERE id = ANY($1) ORDER BY id FOR UPDATE",
);

/**
 * An ended run returns to the queue; a running run stays with its owner, which reloads it. A run of a sub-DAG whose task
 * has resumed becomes independent of that task.
 */
const REOPEN = statement(
  "edit-reopen-runs",
  `WITH ended AS (
     SELECT id FROM dag_run WHERE id = ANY($1) AND state IN ('success', 'failed')
   ), reopened AS (UPDATE dag_run SET generation = generation + 1,
     clear_number = clear_number + 1,
     state = CASE WHEN state = 'running' THEN 'running' ELSE 'queued' END,
     queued_at = CASE WHEN state = 'running' THEN queued_at ELSE now() END,
     started_at = CASE WHEN state = 'running' THEN started_at END,
     ended_at = NULL, ending = NULL, end_reason = NULL, retry_at = NULL,
     try_number = CASE WHEN state = 'running' THEN try_number ELSE 1 END,
     parent_try = CASE WHEN state IN ('queued', 'running') THEN parent_try END,
     version_id = CASE WHEN $2::boolean THEN (SELECT d.version_id FROM dag d WHERE d.dag_id = dag_run.dag_id) ELSE version_id END
   WHERE id = ANY($1) RETURNING id, dag_id, run_id, state
   ) ${publishRuns("(SELECT reopened.* FROM reopened JOIN ended USING (id))")}`,
);

/** Before the runs move to the current version: their attempts keep the version that they ran with. */
const KEEP_VERSIONS = statement(
  "edit-keep-attempt-versions",
  `INSERT INTO attempt_version (attempt, dag_run_id, version_id)
   SELECT a.attempt, r.id, r.version_id FROM dag_run r JOIN dag d ON d.dag_id = r.dag_id
     CROSS JOIN LATERAL (
       SELECT t.attempt FROM task_instance t WHERE t.dag_run_id = r.id AND t.attempt IS NOT NULL
       UNION SELECT x.attempt FROM task_attempt x WHERE x.dag_run_id = r.id) a
   WHERE r.id = ANY($1) AND d.version_id <> r.version_id
   ON CONFLICT (attempt) DO NOTHING`,
);

const BUMP = statement("edit-bump-runs", "UPDATE dag_run SET generation = generation + 1 WHERE id = ANY($1)");

export interface LockedRun {
  readonly id: number;
  readonly dag_id: string;
  readonly state: "queued" | "running" | "success" | "failed";
  /** Set when the run was ended manually and its teardowns are left: the state it ends in. */
  readonly ending: "success" | "failed" | null;
  readonly version_id: number;
}

export const isEnded = ({ state }: LockedRun) => state === "success" || state === "failed";

export function lockRuns(tx: Connection, runs: readonly RunSelection[]): Promise<LockedRun[]> {
  return tx.rows<LockedRun>(LOCK_RUNS, [runs.map((run) => run.dagRunId)]);
}

export function idsOf(runs: readonly LockedRun[]): number[] {
  return runs.map(({ id }) => id);
}

export async function reopenRuns(
  tx: Connection,
  runIds: readonly number[],
  latestVersion: boolean,
): Promise<void> {
  if (latestVersion) await tx.rows(KEEP_VERSIONS, [runIds]);
  await tx.rows(REOPEN, [runIds, latestVersion]);
}

/** The owners of these runs reload them. */
export async function bumpRuns(tx: Connection, runIds: readonly number[]): Promise<void> {
  await tx.rows(BUMP, [runIds]);
}

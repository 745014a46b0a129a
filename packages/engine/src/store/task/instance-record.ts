/** Before a task instance restarts or is ended manually, its attempt is archived and its outputs are deleted. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { ENDED_BY_WAIT } from "./ended-attempts.ts";

/** Run, task and map index of each instance. */
export type InstanceKeys = readonly [
  runIds: readonly number[],
  taskIds: readonly string[],
  mapIndexes: readonly number[],
];

/** Archives the current attempt. $4: also an attempt that is still active and is cut short by the edit. */
const ARCHIVE = statement(
  "edit-archive-attempts",
  `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, scheduled_at, queued_at,
                             started_at, ended_at, executor_job, hostname, pid, reason)
   SELECT t.attempt, t.dag_run_id, t.task_id, t.map_index, t.try_number, t.state, t.scheduled_at, t.queued_at,
          coalesce(t.attempt_started_at, t.started_at), coalesce(t.ended_at, now()), t.executor_job, t.hostname, t.pid, t.reason
   FROM task_instance t JOIN unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     ON t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
   WHERE t.attempt IS NOT NULL AND ($4::boolean OR t.state NOT IN ('queued', 'running', 'restarting'))
   ${ENDED_BY_WAIT}`,
);

const FORGET_OUTPUTS = statement(
  "edit-forget-outputs",
  `DELETE FROM xcom x USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
   WHERE x.dag_run_id = u.run AND x.task_id = u.task AND x.map_index = u.map`,
);

/** `isCutShort`: also attempts that are still active. */
export async function archiveAttempts(
  tx: Connection,
  keys: InstanceKeys,
  isCutShort: boolean,
): Promise<void> {
  await tx.rows(ARCHIVE, [...keys, isCutShort]);
}

export async function forgetOutputs(tx: Connection, keys: InstanceKeys): Promise<void> {
  await tx.rows(FORGET_OUTPUTS, keys);
}

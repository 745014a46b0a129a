/**
 * How edits change task instances of runs that they have locked.
 *
 * A running instance that is cleared becomes `restarting` and keeps its attempt and slot: its owner kills the process
 * before it starts the next try, so that two processes of one task never overlap.
 */
import { OCCUPYING } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { limitNames } from "../pool/limit-key.ts";
import { archiveAttempts, forgetOutputs, type InstanceKeys } from "../task/instance-record.ts";
import { publishTasks } from "../task/state-signals.ts";
import { cancelWaits } from "../trigger/deferrals.ts";
import { forgetStops } from "./edited-drives.ts";
import { type EditedInstance, keyColumns } from "./edited-instances.ts";

const CLEAR = statement(
  "edit-clear-instances",
  `WITH cleared AS (UPDATE task_instance t SET
     state = CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN 'restarting' ELSE 'pending' END,
     attempt = CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN t.attempt END,
     max_tries = t.try_number + coalesce((k.task->>'retries')::int, 0), infra_losses = 0,
     scheduled_at = CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN t.scheduled_at END,
     queued_at = CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN t.queued_at END,
     started_at = CASE WHEN t.state IN ('running', 'restarting') THEN t.started_at END, ended_at = NULL,
     retry_at = NULL, reason = NULL, resumed_attempt = NULL, keeps_slot = false, is_marked = false,
     note = CASE WHEN $4::boolean THEN $5 ELSE t.note END
   FROM unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
   JOIN dag_run r ON r.id = u.run
   JOIN dag_version v ON v.id = r.version_id
   LEFT JOIN LATERAL jsonb_array_elements(v.manifest->'tasks') AS k(task) ON k.task->>'taskId' = u.task
   WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
   RETURNING t.*) ${publishTasks("cleared")}`,
);

/** An instance that has ended keeps its end, as in Airflow. */
const MARK = statement(
  "edit-mark-instances",
  `WITH marked AS (
     UPDATE task_instance t SET state = u.state,
            ended_at = CASE WHEN t.state IN ('success', 'failed', 'skipped', 'upstream_failed', 'removed')
                            THEN coalesce(t.ended_at, now()) ELSE now() END, retry_at = NULL, reason = $5, attempt = NULL,
            resumed_attempt = NULL, keeps_slot = false, is_marked = $6
     FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[]) AS u(run, task, map, state)
     WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
     RETURNING t.*
   ) ${publishTasks("marked")}`,
);

const RELEASE = statement(
  "edit-release-slots",
  `WITH locked AS (
     SELECT p.name, d.delta FROM pool p JOIN unnest($1::text[], $2::int[]) AS d(name, delta) ON d.name = p.name
     ORDER BY p.name FOR NO KEY UPDATE OF p
   ) UPDATE pool p SET occupied = p.occupied - locked.delta FROM locked WHERE p.name = locked.name`,
);

export async function clearChosen(
  tx: Connection,
  chosen: readonly EditedInstance[],
  note: string | null | undefined,
): Promise<void> {
  await clearInstances(tx, keyColumns(chosen), note);
  // Running instances keep their slots until their processes are gone.
  await release(
    tx,
    chosen.filter((row) => row.keeps_slot),
  );
  await cancelWaits(tx, [...new Set(chosen.map((row) => row.dag_run_id))]);
  await forgetStops(tx, chosen);
}

/** The transaction has locked the runs, and raises their generation. `note`: undefined keeps the notes. */
export async function clearInstances(
  tx: Connection,
  keys: InstanceKeys,
  note: string | null | undefined,
): Promise<void> {
  await archiveAttempts(tx, keys, false);
  await tx.rows(CLEAR, [...keys, note !== undefined, note ?? null]);
  await forgetOutputs(tx, keys);
}

/** Ends instances manually: running attempts are archived, slots released. */
export async function endInstances(
  tx: Connection,
  rows: readonly EditedInstance[],
  end: { readonly states: readonly string[]; readonly reason: string; readonly isMarked: boolean },
): Promise<void> {
  await archiveAttempts(tx, keyColumns(rows), true);
  await tx.rows(MARK, [...keyColumns(rows), end.states, end.reason, end.isMarked]);
  await release(tx, rows);
  await cancelWaits(tx, [...new Set(rows.map((row) => row.dag_run_id))]);
}

export async function release(tx: Connection, rows: readonly EditedInstance[]): Promise<void> {
  const slots = new Map<string, number>();
  for (const row of rows) {
    if (!OCCUPYING.has(row.state) && !row.keeps_slot) continue;
    slots.set(row.pool, (slots.get(row.pool) ?? 0) + row.pool_slots);
    for (const name of limitNames(row.limit_key)) slots.set(name, (slots.get(name) ?? 0) + 1);
  }
  if (slots.size > 0) await tx.rows(RELEASE, [[...slots.keys()], [...slots.values()]]);
}

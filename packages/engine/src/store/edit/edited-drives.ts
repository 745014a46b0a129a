/** Changes of a run's drive by an edit: stops and starts of the tasks that the edit clears, marks or ends. */
import { type Cause, needsStart, type StoredDrive } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { loadDrives } from "../drive/run-drives.ts";
import { readManifests } from "../list/dag-versions.ts";
import type { EditedInstance } from "./edited-instances.ts";

type StoredTask = NonNullable<StoredDrive["tasks"]>[string];

interface EditedTask {
  readonly dag_run_id: number;
  readonly task_id: string;
}

interface EndedStart extends EditedTask {
  readonly cause: Cause | null;
  readonly version_id: number;
}

/** Deletes the oldest start of each task. */
const END_STARTS = statement(
  "edit-end-starts",
  `DELETE FROM run_start s USING unnest($1::bigint[], $2::text[]) AS u(run, task), dag_run r
   WHERE s.dag_run_id = u.run AND s.task_id = u.task AND r.id = u.run
     AND s.ordinal = (SELECT min(f.ordinal) FROM run_start f WHERE f.dag_run_id = u.run AND f.task_id = u.task)
   RETURNING s.dag_run_id, s.task_id, s.cause, r.version_id`,
);

const COUNT_TRY = statement(
  "edit-count-try",
  `UPDATE task_instance t SET try_number = 1 FROM unnest($1::bigint[], $2::text[]) AS u(run, task)
   WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.try_number = 0`,
);

const SET_STATE = statement("drive-set-state", "UPDATE run_drive SET state = $2 WHERE dag_run_id = $1");

/** Tasks that were to stop and have been cleared: they start again after they have stopped. The runs are locked. */
export async function forgetStops(tx: Connection, tasks: readonly EditedTask[]): Promise<void> {
  await changeTasks(tx, tasks, ({ stopping, ...rest }) => (stopping === undefined ? null : rest));
}

/** For instances that an edit ends: an instance that has not started ends together with its pending start. */
export async function endStarts(tx: Connection, instances: readonly EditedInstance[]): Promise<void> {
  const unbegun = instances.filter(({ state, try_number }) => state === "pending" && try_number === 0);
  if (unbegun.length === 0) return;
  const ended = await tx.rows<EndedStart>(END_STARTS, taskColumns(unbegun));
  if (ended.length === 0) return;
  const manifests = await readManifests(tx, [...new Set(ended.map((row) => row.version_id))]);
  // As the model counts it (model/run/commands.ts): the task needs no other start when it is cleared.
  const counted = ended.filter(({ task_id, version_id }) => {
    const task = manifests.get(version_id)!.tasks.find(({ taskId }) => taskId === task_id);
    return task !== undefined && needsStart(task);
  });
  await tx.rows(COUNT_TRY, taskColumns(counted));
  // If the task is cleared while the run continues, it keeps the signals that had started it.
  await changeTasks(tx, ended, (stored, { cause }) => (cause === null ? null : { ...stored, cause }));
}

/** `change` returns null if nothing has to be stored. */
async function changeTasks<T extends EditedTask>(
  tx: Connection,
  tasks: readonly T[],
  change: (stored: StoredTask, task: T) => StoredTask | null,
): Promise<void> {
  if (tasks.length === 0) return;
  const runIds = tasks.map((task) => task.dag_run_id);
  for (const { dag_run_id: runId, state } of await loadDrives(tx, runIds)) {
    const drive = (state ?? {}) as StoredDrive;
    const changed = tasks.flatMap((task) => {
      const stored = task.dag_run_id === runId ? change(drive.tasks?.[task.task_id] ?? {}, task) : null;
      return stored === null ? [] : [[task.task_id, stored] as const];
    });
    if (changed.length === 0) continue;
    const after = { ...drive, tasks: { ...drive.tasks, ...Object.fromEntries(changed) } };
    await tx.rows(SET_STATE, [runId, JSON.stringify(after)]);
  }
}

function taskColumns(tasks: readonly EditedTask[]): readonly [readonly number[], readonly string[]] {
  return [tasks.map((task) => task.dag_run_id), tasks.map((task) => task.task_id)];
}

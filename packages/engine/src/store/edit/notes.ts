/** User notes on runs and task instances. No decision depends on them, so they need no run lock. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export async function setRunNote(tx: Connection, dagRunId: number, note: string | null): Promise<void> {
  await tx.rows(RUN_NOTE, [dagRunId, note]);
}

/** Sets the note of one instance, or of all instances of the task with `mapIndex` null. */
export async function setTaskNote(
  tx: Connection,
  instance: { dagRunId: number; taskId: string; mapIndex: number | null },
  note: string | null,
): Promise<void> {
  await tx.rows(TASK_NOTE, [instance.dagRunId, instance.taskId, instance.mapIndex, note]);
}

const RUN_NOTE = statement("note-run", "UPDATE dag_run SET note = $2 WHERE id = $1");

const TASK_NOTE = statement(
  "note-task",
  `UPDATE task_instance SET note = $4
   WHERE dag_run_id = $1 AND task_id = $2 AND ($3::int4 IS NULL OR map_index = $3)`,
);

/** Pending starts of tasks, caused by signals, ticks or users: one row each, until the task starts. */
import type { Cause, StoredStart } from "../../model/index.ts";
import { type Call, type Connection, call } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { DriveWrite } from "./run-drives.ts";

const LOAD = statement(
  "start-load",
  `SELECT dag_run_id, task_id, ordinal, cause FROM run_start WHERE dag_run_id = ANY($1)
   ORDER BY dag_run_id, task_id, ordinal`,
);

/** Bounded below by the first existing row: the index scan skips deleted rows that are not vacuumed yet. */
const REMOVE = statement(
  "start-remove",
  `DELETE FROM run_start s USING unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) AS u(run, task, first, next)
   WHERE s.dag_run_id = u.run AND s.task_id = u.task AND s.ordinal >= u.first AND s.ordinal < u.next`,
);

const ADD = statement(
  "start-add",
  `INSERT INTO run_start (dag_run_id, task_id, ordinal, cause)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::json[])`,
);

interface StartRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly ordinal: number;
  readonly cause: Cause | null;
}

/** By run; the starts of a task are in order. */
export async function loadStarts(
  db: Connection,
  runIds: readonly number[],
): Promise<Map<number, StoredStart[]>> {
  const found = new Map<number, StoredStart[]>();
  if (runIds.length === 0) return found;
  for (const { cause, dag_run_id: id, ordinal, task_id: taskId } of await db.rows<StartRow>(LOAD, [runIds])) {
    const starts = found.get(id);
    if (starts === undefined) found.set(id, [{ taskId, ordinal, cause }]);
    else starts.push({ taskId, ordinal, cause });
  }
  return found;
}

/** The calls of a batch for the starts of these runs. */
export function startCalls(drives: readonly Pick<DriveWrite, "runId" | "starts">[]): Call[] {
  const changes = drives.flatMap(({ runId, starts }) => starts.map((each) => ({ runId, ...each })));
  const removed = changes.filter(({ before, from }) => from < before);
  const added = changes.flatMap(({ added, runId }) => added.map((each) => ({ runId, ...each })));
  const calls: Call[] = [];
  if (removed.length > 0)
    calls.push(
      call(
        REMOVE,
        removed.map(({ runId }) => runId),
        removed.map(({ taskId }) => taskId),
        removed.map(({ from }) => from),
        removed.map(({ before }) => before),
      ),
    );
  if (added.length > 0)
    calls.push(
      call(
        ADD,
        added.map(({ runId }) => runId),
        added.map(({ taskId }) => taskId),
        added.map(({ ordinal }) => ordinal),
        added.map(({ cause }) => (cause === null ? null : JSON.stringify(cause))),
      ),
    );
  return calls;
}

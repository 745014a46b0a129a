import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import { renderedMapIndex } from "./documents.ts";

type Place = Pick<TaskInstanceRow, "dag_id" | "map_index" | "place" | "run_id" | "task_id" | "try_number">;

/** Which try of which task a document is about. */
export function taskPlace(row: Place) {
  return {
    dag_id: row.dag_id,
    dag_run_id: row.run_id,
    task_id: row.task_id,
    map_index: row.map_index,
    rendered_map_index: renderedMapIndex(row),
    try_number: row.try_number,
  };
}

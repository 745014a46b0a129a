/** How an instance is shown: `load`, `load[3]`; by its path where maps are nested, by its label where it has one. */
import type { TaskInstance } from "../client/resources.ts";

export function instanceName({
  map_index,
  rendered_map_index,
  task_id,
}: Pick<TaskInstance, "task_id" | "map_index" | "rendered_map_index">): string {
  const shown = rendered_map_index ?? (map_index < 0 ? null : String(map_index));
  return shown === null ? task_id : `${task_id}[${shown}]`;
}

/** How an instance is shown: `load`, `load[3]`; by its path where maps are nested, by its label where it has one. */
import type { TaskInstance } from "../client/resources.ts";
import { type Column, truncate } from "./table.ts";

type Named = Pick<TaskInstance, "task_id" | "map_index" | "rendered_map_index">;

/** In a table a longer label would leave no room for the rest. */
const LABEL_WIDTH = 40;

export function instanceName({ map_index, rendered_map_index, task_id }: Named): string {
  const shown = rendered_map_index ?? (map_index < 0 ? null : String(map_index));
  return shown === null ? task_id : `${task_id}[${shown}]`;
}

/** Of a table of instances: their names and, where some are named by more than their map index, that too. */
export function instanceColumns<T extends Named>(rows: readonly T[]): Column<T>[] {
  const name: Column<T> = {
    title: "TASK",
    value: ({ map_index, rendered_map_index: label, task_id }) =>
      instanceName({ task_id, map_index, rendered_map_index: label && truncate(label, LABEL_WIDTH) }),
  };
  const isPlain = ({ map_index, rendered_map_index }: T) =>
    rendered_map_index === null || rendered_map_index === String(map_index);
  if (rows.every(isPlain)) return [name];
  const index = ({ map_index }: T) => (map_index < 0 ? "" : String(map_index));
  return [name, { title: "INDEX", value: index, align: "right" }];
}

/** Why it ended as it did: of one that did not run because of a failure, which task failed first. */
export function reasonText({ failed_upstream: failed, note, reason }: TaskInstance): string {
  if (failed !== null) return `${instanceName(failed)} failed`;
  return reason ?? note ?? "";
}

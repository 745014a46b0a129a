/** The names of task instances: `load`, `load[3]`, `load[3] north`. */
import { instanceText } from "@tradewind/sdk/wording";
import type { TaskInstance } from "../client/resources.ts";
import { type Column, truncate } from "./table.ts";

type Named = Pick<TaskInstance, "task_id" | "map_index" | "rendered_map_index">;

const LABEL_WIDTH = 40;

export function instanceName({ map_index, rendered_map_index: label, task_id }: Named): string {
  return instanceText(task_id, map_index, label && truncate(label, LABEL_WIDTH));
}

/** The columns of a table of instances: TASK, and LABEL if some instances have a label or a nested path. */
export function instanceColumns<T extends Named>(rows: readonly T[]): Column<T>[] {
  const labelOf = ({ map_index, rendered_map_index: label }: T) =>
    map_index < 0 || label === null || label === String(map_index) ? "" : truncate(label, LABEL_WIDTH);
  const isPlaceholder = ({ map_index }: T) => map_index < 0;
  const name: Column<T> = {
    title: "TASK",
    value: (row) => (isPlaceholder(row) ? instanceName(row) : instanceText(row.task_id, row.map_index, null)),
  };
  if (rows.every((row) => labelOf(row) === "")) return [name];
  return [name, { title: "LABEL", value: labelOf, flexible: true }];
}

/** The reason of the outcome; for a task that did not run because of a failure, the task that failed first. */
export function reasonText({ failed_upstream: failed, note, reason }: TaskInstance): string {
  if (failed !== null) return `${instanceName(failed)} failed`;
  return reason ?? note ?? "";
}

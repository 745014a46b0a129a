import type { components } from "../../api/schema.gen.ts";

export type Wait = components["schemas"]["Wait"];

/** Identifies a wait in the address. */
export function waitKey({ trigger_id, dag_run_id, task_id, map_index }: Wait): string {
  return `${trigger_id}.${dag_run_id}.${task_id}.${map_index}`;
}

/** `tradewind.file` → `file`; kinds of users keep their name. */
export function kindName(kind: string): string {
  return kind.replace(/^tradewind\./, "").replaceAll("_", " ");
}

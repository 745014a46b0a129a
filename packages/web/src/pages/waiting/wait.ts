import type { TaskRef } from "../../actions/commands.ts";
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

/** The arguments as text; of a signal, beginning with its key. */
export function waitText({ args_text, kind }: Wait): string {
  return kind === "tradewind.signal" ? args_text.replace(/^namespace=default, key=/, "") : args_text;
}

/** `default/order.paid` → `order.paid`; other namespaces are shown. */
export function signalName(signal: string): string {
  return signal.replace(/^default\//, "");
}

export function taskOf({ dag_id, dag_run_id, map_index, task_id }: Wait): TaskRef {
  return {
    dagId: dag_id,
    runId: dag_run_id,
    taskId: task_id,
    mapIndex: map_index < 0 ? null : map_index,
  };
}

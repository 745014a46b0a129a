/** Builds the inputs of a task from the outputs of others. */
import { TaskError } from "../check/errors.ts";
import type { SettledInput, TaskCall } from "../runtime/program.ts";
import { ITEM, RESOURCE, type TaskPlan } from "./plan.ts";

/** @throws TaskError if a required input is missing. */
export function inputValues(task: TaskPlan, inputs: TaskCall["inputs"]): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, source] of Object.entries(task.inputs)) {
    const given = inputs[name] ?? { state: "pending", value: undefined };
    const { each, state, value } = given;
    if ("item" in source) {
      if (value === undefined) throw itemGone(task.taskId);
      // Under any rule: without its item the task would not run.
      values[name] = name === ITEM || task.settings.rule === "allSuccess" ? value : { state, value };
    } else if (task.settings.rule !== "allSuccess" && !(task.role === "teardown" && name === RESOURCE)) {
      values[name] = each ? each.map(settled) : settled(given);
    } else if (state === "success") {
      values[name] = value;
    } else {
      throw new TaskError(
        "TW_INPUT_MISSING",
        `input "${name}" needs task "${source.taskId}" to have succeeded, but its state is ${state}; clear that task, or use another rule`,
      );
    }
  }
  return values;
}

function settled({ state, value }: SettledInput): { state: string; value?: unknown } {
  return state === "success" ? { state, value } : { state };
}

function itemGone(taskId: string): TaskError {
  return new TaskError(
    "TW_INPUT_MISSING",
    `the list that task "${taskId}" is mapped over no longer has an item for this index; clear the task that returned the list, with all downstream`,
  );
}

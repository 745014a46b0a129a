/** Edits of one run, with the options that the API has by default. */

import type { Connection } from "../../src/store/database/database.ts";
import { type ClearEdit, type ClearResult, clearTasks } from "../../src/store/edit/clear-tasks.ts";

/** Ids stand for all instances of a task; null: every task. */
export type EditedTasks = readonly (string | { readonly taskId: string; readonly mapIndex: number | null })[];

export interface RunClear extends Partial<Pick<ClearEdit, "only" | "latestVersion" | "refuseRunning">> {
  readonly tasks?: EditedTasks | null;
}

export function clearRun(
  tx: Connection,
  id: number,
  { tasks = null, ...edit }: RunClear = {},
): Promise<ClearResult> {
  return clearTasks(tx, {
    runs: [{ dagRunId: id, tasks: tasks && selected(tasks) }],
    only: "any",
    resetRuns: true,
    latestVersion: false,
    refuseRunning: false,
    dryRun: false,
    ...edit,
  });
}

export function selected(tasks: EditedTasks) {
  return tasks.map((task) => (typeof task === "string" ? { taskId: task, mapIndex: null } : task));
}

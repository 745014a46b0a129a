/**
 * The executors and queues that the tasks of a file name. A task that names an unconfigured executor would run on another
 * one, so its file is not loaded. A queue only selects workers: a task with an unserved queue is loaded with a warning.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { DEFAULT_QUEUE } from "../model/index.ts";

// Manifests come from a child process that has run user code: their fields are checked regardless of their type.

const UNKNOWN = "EXECUTOR_UNKNOWN";

/** The import error of a file whose tasks name an executor that is not configured; null if there is none. */
export function unknownExecutor(
  file: string,
  manifests: readonly DagManifest[],
  executors: readonly string[],
): string | null {
  for (const { dagId, tasks } of manifests) {
    const task = tasks.find(({ executor }) => typeof executor === "string" && !executors.includes(executor));
    if (task === undefined) continue;
    const known = executors.map((name) => `"${name}"`).join(", ");
    return `${file}: task "${task.taskId}" of DAG "${dagId}" names the executor "${task.executor}", which is not configured. Configured: ${known}. Name one of these, or leave the option out. [${UNKNOWN}]`;
  }
  return null;
}

/** The queues that tasks name and no worker serves, as `dag.task: queue`. */
export function unservedQueues(manifests: readonly DagManifest[]): string[] {
  return manifests.flatMap(({ dagId, tasks }) =>
    tasks
      .filter(({ queue }) => typeof queue === "string" && queue !== DEFAULT_QUEUE)
      .map(({ queue, taskId }) => `${dagId}.${taskId}: ${queue}`),
  );
}

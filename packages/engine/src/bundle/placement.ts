/**
 * The executors and queues that the tasks of a file name. A task that names an unconfigured executor would run on another
 * one, so its file is not loaded. A queue selects workers, which the local executor does not have. Whether live workers serve
 * a queue changes at any time: the health check, `doctor` and `why` name queues that none serves.
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

/**
 * The queues that tasks of the local executor name, as `dag.task: queue`: it runs them with all others.
 * @param standard The executor of tasks that name none.
 */
export function ignoredQueues(manifests: readonly DagManifest[], standard: string): string[] {
  return manifests.flatMap(({ dagId, tasks }) =>
    tasks
      .filter(({ executor, queue }) => {
        return (executor ?? standard) === "local" && typeof queue === "string" && queue !== DEFAULT_QUEUE;
      })
      .map(({ queue, taskId }) => `${dagId}.${taskId}: ${queue}`),
  );
}

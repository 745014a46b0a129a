/** An attempt that is over, as it goes into its task's history. */
import type { Instance } from "../model/index.ts";
import type { AttemptWrite } from "../store/run-batch.ts";

export function attemptWrite(runId: number, instance: Instance, endedAt: number): AttemptWrite {
  return {
    attempt: instance.attempt ?? "",
    runId,
    taskId: instance.node.id,
    mapIndex: instance.mapIndex,
    tryNumber: instance.tryNumber,
    state: instance.state,
    scheduledAt: instance.scheduledAt,
    queuedAt: instance.queuedAt,
    startedAt: instance.attemptStartedAt ?? instance.startedAt,
    endedAt,
    pid: instance.pid,
    reason: null,
  };
}

/** PostgreSQL takes no NUL in text. */
export function tidy(reason: string): string {
  return reason.replaceAll("\u0000", "");
}

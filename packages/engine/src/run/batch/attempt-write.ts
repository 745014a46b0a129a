/** The rows of an attempt that has ended: in the history of its task and in the signal log. */
import type { Instance } from "../../model/index.ts";
import type { AttemptWrite, SignalWrite } from "../../store/task/run-batch.ts";

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
    reason: instance.reason === null ? null : tidy(instance.reason),
  };
}

/** The signal that the engine sends when the state of an instance changes. */
export function stateSignal(
  { dag_id: dagId, run_id: runId }: { readonly dag_id: string; readonly run_id: string },
  { mapIndex, node, state, tryNumber }: Instance,
): SignalWrite {
  return { namespace: "task", key: `${dagId}/${runId}/${node.id}`, value: { state, mapIndex, tryNumber } };
}

/** PostgreSQL does not store NUL in text. */
export function tidy(reason: string): string {
  return reason.replaceAll("\u0000", "");
}

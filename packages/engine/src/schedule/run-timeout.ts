/** A run that took longer than it may. */
import { type Instance, isOccupying } from "../model/index.ts";
import type { RunActor, Traces } from "./run-actor.ts";

/**
 * Ends the run as failed, and with it what is under way; what had not started is skipped. Answers who left slots. The
 * processes of its tasks are stopped and run no callbacks any more, so those are left to a worker, as rows.
 */
export function timeOut(actor: RunActor, now: number, traces: Traces): Instance[] {
  actor.isTimedOut = true;
  const before = [...actor.model.instances()].map((instance) => ({
    instance,
    isFailed: instance.state === "failed",
    isHolding: isOccupying(instance),
  }));
  const reason = "the run timed out";
  actor.model.apply({ type: "halted", at: now, reason, active: "failed" }, now);
  for (const { instance, isFailed } of before) {
    const { mapIndex, node, state, tryNumber } = instance;
    if (isFailed || state !== "failed" || !node.manifest.callbacks.failure) continue;
    const error = { name: "RunTimedOut", message: reason, stack: null, code: "TASK_RUN_TIMED_OUT" };
    traces.callbacks.push({ runId: actor.id, taskId: node.id, mapIndex, event: "failure", tryNumber, error });
  }
  return before
    .filter(({ instance, isHolding }) => isHolding && !isOccupying(instance))
    .map(({ instance }) => instance);
}

/** Runs that end before their tasks: they timed out, or were ended manually. */
import { type Instance, isOccupying } from "../../model/index.ts";
import { traceTask } from "./event-traces.ts";
import type { RunActor, Traces } from "./run-actor.ts";

/**
 * The run has timed out: it fails with its running instances; instances that have not started are skipped, except
 * teardowns. Returns the instances that freed slots. Their callbacks are stored as rows, because their processes are
 * stopped. If the batch is not stored, the next owner finds the run timed out as well.
 */
export function timeOut(actor: RunActor, now: number, traces: Traces): Instance[] {
  actor.ending = { state: "failed", reason: "timed_out" };
  const before = [...actor.model.instances()].map((instance) => ({
    instance,
    isFailed: instance.state === "failed",
    isHolding: isOccupying(instance),
  }));
  const reason = "the run timed out";
  actor.model.apply({ type: "halted", at: now, reason, active: "failed" }, now);
  for (const { instance, isFailed } of before) {
    if (isFailed || instance.state !== "failed") continue;
    const error = { name: "RunTimedOut", message: reason, stack: null, code: "TASK_RUN_TIMED_OUT" };
    traceTask(actor, "failure", instance, { ...traces, error });
  }
  return before
    .filter(({ instance, isHolding }) => isHolding && !isOccupying(instance))
    .map(({ instance }) => instance);
}

/** A run that was just loaded and was ended manually: instances without a row at the time of the edit do not start either. */
export function goOnEnding({ ending, model }: RunActor, at: number): void {
  if (ending) model.apply({ type: "halted", at, reason: ending.reason ?? "", active: ending.state }, at);
}

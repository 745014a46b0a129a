/** Runs that are ended before their tasks have: they took longer than they may, or somebody has ended them. */
import { type Instance, isOccupying } from "../../model/index.ts";
import { traceTask } from "./event-traces.ts";
import type { RunActor, Traces } from "./run-actor.ts";

/**
 * The run has no more time: it fails, and with it what is under way; what had not started is skipped, but for teardowns.
 * Answers who left slots. The processes of its tasks are stopped and run no callbacks any more, so those are left to a
 * worker, as rows. Nothing of it is stored: whoever takes the run over finds it late, too.
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

/** A run that was just read: if somebody has ended it, then what the edit had no row of does not begin either. */
export function goOnEnding({ ending, model }: RunActor, at: number): void {
  if (ending) model.apply({ type: "halted", at, reason: ending.reason ?? "", active: ending.state }, at);
}

/** The rows that the end of an attempt adds to a batch besides the state of its instance. */
import type { ErrorFacts } from "@tradewind/sdk/program";
import {
  type AttemptEnd,
  type AttemptOutcome,
  failureReason,
  type Instance,
  isStreaming,
} from "../../model/index.ts";
import { type OutputWrite, outputOf } from "../../store/output/run-outputs.ts";
import type { AttemptWrite } from "../../store/task/ended-attempts.ts";
import { successDrafts, traceTask } from "./event-traces.ts";
import type { RunActor, Traces } from "./run-actor.ts";
import { deferralWrite } from "./waiting.ts";

/** An end that the model has applied; `before` is the attempt as it was until then. */
export interface AppliedEnd {
  readonly before: AttemptWrite;
  readonly end: AttemptEnd;
  readonly outcome: AttemptOutcome;
}

export function recordEnd(actor: RunActor, instance: Instance, applied: AppliedEnd, traces: Traces): void {
  const { before, end, outcome } = applied;
  // Not the time of an earlier retry: a lost attempt starts again at once.
  const retryAt = end.type === "lost" && instance.state !== "up_for_retry" ? null : instance.retryAt;
  if (end.type === "stopped") {
    if (instance.state === "success") traceTask(actor, "success", instance, { ...traces, error: null });
  } else if (end.type === "restarted") {
    // Not a failure: no callback runs, and no notice is sent.
    const state = isStreaming(instance.node.manifest) ? "success" : "skipped";
    traces.attempts.push({ ...before, state, reason: before.reason ?? "restarted" });
  } else if (end.type === "lost") {
    const error = lostError(end.reason);
    if (instance.state === "failed") traceTask(actor, "failure", instance, { ...traces, error });
    else traces.attempts.push({ ...before, state: "failed", reason: end.reason, retryAt });
    if (instance.state === "up_for_retry") traceTask(actor, "retry", instance, { ...traces, error });
  } else if (outcome.kind === "success") {
    recordSuccess(actor, instance, outcome, traces);
  } else if (outcome.kind === "failed") {
    const { error } = outcome;
    const isRetried = instance.state === "up_for_retry" || instance.state === "scheduled";
    if (isRetried)
      traces.attempts.push({ ...before, state: "failed", reason: failureReason(error), retryAt });
    traceTask(actor, isRetried ? "retry" : "failure", instance, { ...traces, error });
  } else if (outcome.kind === "deferred") {
    traces.attempts.push({ ...before, state: "deferred" });
    traces.deferrals.push(deferralWrite(actor, instance, end, outcome));
  } else if (outcome.kind === "rescheduled") {
    traces.attempts.push({ ...before, state: "up_for_reschedule", retryAt });
  }
}

function recordSuccess(
  actor: RunActor,
  instance: Instance,
  outcome: Extract<AttemptOutcome, { kind: "success" }>,
  traces: Traces,
): void {
  const { mapIndex, node } = instance;
  const of = { runId: actor.id, taskId: node.id, mapIndex };
  const value: OutputWrite["value"] | undefined = outputOf(outcome);
  if (value !== undefined) traces.outputs.push({ ...of, key: "return_value", value });
  if (outcome.skip.length > 0) traces.outputs.push({ ...of, key: "tradewind.skip", value: outcome.skip });
  traces.signals.push(...successDrafts(actor.facts, instance, outcome.signals));
  traceTask(actor, "success", instance, { ...traces, error: null });
}

function lostError(reason: string): ErrorFacts {
  return { name: "AttemptLost", message: reason, stack: null, code: "TASK_ATTEMPT_LOST" };
}

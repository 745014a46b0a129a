/** From the report of an executor (or the end of a wait) to the event that the model applies. */
import { retryDelayMs } from "../calendar/backoff.ts";
import { failureReason } from "../notify/notice.ts";
import { isStreaming } from "../signal/drive.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import type { Instance } from "./instance.ts";
import type { RunModel } from "./run.ts";
import type { AttemptEnd } from "./run-event.ts";
import { waitOf } from "./wait.ts";

export interface EndTerms {
  readonly at: number;
  readonly run: { readonly dagId: string; readonly runId: string };
  /** Whether a deferred instance keeps its pool slots. */
  readonly keepsSlot?: boolean;
  /** How many lost attempts a try may have before it fails; null: this loss does not count. */
  readonly lossBudget?: number | null;
}

/** The end of the current attempt of `instance`. */
export function attemptEnd(
  model: RunModel,
  instance: Instance,
  outcome: AttemptOutcome,
  { at, keepsSlot = false, lossBudget = null, run }: EndTerms,
): AttemptEnd {
  const { attempt, mapIndex, node, state } = instance;
  const of = { taskId: node.id, mapIndex, attempt: attempt ?? "", at };
  const isRestarting = state === "restarting";
  // A stopped task keeps its success. A restarted one does not: another try follows.
  if (model.stopping(instance) !== null && (isRestarting || outcome.kind !== "success"))
    return { type: "stopped", ...of };
  if (isRestarting) return { type: "restarted", ...of };
  switch (outcome.kind) {
    case "success":
      return { type: "succeeded", ...of, skip: outcome.skip };
    case "skipped":
      return { type: "skipped", ...of, reason: outcome.reason };
    case "failed": {
      const { error, retry } = outcome;
      const retryAt = at + retryDelay(model, instance, { at, run });
      return { type: "failed", ...of, retry, retryAt, reason: failureReason(error) };
    }
    case "deferred":
      return { type: "deferred", ...of, wait: waitOf(outcome, at, keepsSlot) };
    case "rescheduled":
      return { type: "rescheduled", ...of, retryAt: at + outcome.afterMs };
    case "cancelled":
      return { type: "lost", ...of, reason: "cancelled", budget: null, retryAt: null };
    case "lost": {
      // A streaming task runs until its host ends: losing that host is not a failure of the task.
      const budget = isStreaming(node.manifest) ? null : lossBudget;
      const retryAt = budget === null ? null : at + retryDelay(model, instance, { at, run });
      return { type: "lost", ...of, reason: outcome.reason, budget, retryAt };
    }
  }
}

/** The delay of a streaming task grows with its consecutive failures: most of its many tries may have run for days. */
function retryDelay({ drive }: RunModel, instance: Instance, { at, run }: EndTerms): number {
  const { mapIndex, node } = instance;
  const ranMs = at - (instance.attemptStartedAt ?? instance.startedAt ?? at);
  const tryNumber =
    drive && isStreaming(node.manifest) ? drive.countFailure(node.id, ranMs) : instance.tryNumber;
  const { dagId, runId } = run;
  return retryDelayMs(node.manifest, { dagId, runId, taskId: node.id, mapIndex, tryNumber });
}

/** Waits, from what a task says to the rows of a batch. */
import { randomBytes } from "node:crypto";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type { Deferral } from "@tradewind/sdk/program";
import { type Instance, waitOf } from "../../model/index.ts";
import { sinceRun, waitsForCalls } from "../../model/trigger/trigger-call.ts";
import type { DeferralWrite, TriggerWrite } from "../../store/trigger/deferrals.ts";
import { triggerFingerprint } from "../../store/trigger/trigger-fingerprint.ts";

/** What a wait needs to know of where it belongs. */
export interface WaitPlace {
  readonly runId: number;
  readonly bundleHash: string;
  readonly instance: Instance;
  /** The attempt that waits. */
  readonly attempt: string;
  /** Milliseconds of the database's clock. */
  readonly at: number;
  /** When its run began. */
  readonly runStartedAt: string | null;
}

export function deferralWrite(place: WaitPlace, deferral: Deferral): DeferralWrite {
  const { runId, instance, attempt, at } = place;
  return {
    attempt,
    runId,
    taskId: instance.node.id,
    mapIndex: instance.mapIndex,
    tryNumber: instance.tryNumber,
    name: deferral.name,
    method: deferral.method,
    kwargs: deferral.kwargs,
    onTimeout: deferral.onTimeout,
    onFailure: deferral.onFailure,
    timeoutAt: waitOf(deferral, at).timeoutAt,
    onCancel: cancelOf(place, deferral),
    trigger: triggerWrite(place, sinceRun(deferral.trigger, place.runStartedAt)),
  };
}

/** By the bundle that began the wait: a run that is cleared may have another version by then. */
function cancelOf({ bundleHash }: WaitPlace, deferral: Deferral): Json | null {
  const { cancelInputs, onCancel, trigger } = deferral;
  if (!onCancel) return null;
  return { bundle: bundleHash, trigger, inputs: cancelInputs ?? null } as unknown as Json;
}

function triggerWrite({ bundleHash, instance }: WaitPlace, trigger: TriggerCall): TriggerWrite {
  const { kind, args, source, queue, replicas, wake, timed } = trigger;
  const own = source === "builtin" ? null : bundleHash;
  return {
    fingerprint: (isShared(trigger, instance) ? triggerFingerprint(trigger, own) : randomBytes(32)).toString(
      "hex",
    ),
    kind,
    args,
    bundleHash: own,
    queue,
    replicas,
    wakeAt: wake !== null && "at" in wake ? Date.parse(wake.at) : null,
    wakeAfterMs: wake !== null && "afterMs" in wake ? wake.afterMs : null,
    timed,
  };
}

/**
 * A time counted from when the wait began is nobody else's. Neither are the calls that a try has not taken yet, once it
 * has waited before.
 */
function isShared(trigger: TriggerCall, { resumedAttempt }: Instance): boolean {
  if (resumedAttempt !== null && waitsForCalls(trigger)) return false;
  return trigger.wake === null || "at" in trigger.wake;
}

/** From the deferral that a task reports to the rows of a batch. */
import { randomBytes } from "node:crypto";
import { APPROVAL_KIND } from "@tradewind/sdk/approval-request";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type { Deferral } from "@tradewind/sdk/program";
import { type Instance, waitOf } from "../../model/index.ts";
import { sinceRun, waitsForCalls } from "../../model/trigger/trigger-call.ts";
import type { DeferralWrite, TriggerWrite } from "../../store/trigger/deferrals.ts";
import { triggerFingerprint } from "../../store/trigger/trigger-fingerprint.ts";
import type { RunActor } from "./run-actor.ts";

/** @param wait The attempt that waits, and since when (milliseconds of the database's clock). */
export function deferralWrite(
  { facts, id: runId, version }: RunActor,
  instance: Instance,
  { at, attempt }: { readonly at: number; readonly attempt: string },
  deferral: Deferral,
): DeferralWrite {
  const { bundleHash } = version;
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
    scheduledAt: instance.scheduledAt,
    onCancel: cancelOf(bundleHash, deferral),
    trigger: triggerWrite(bundleHash, instance, sinceRun(deferral.trigger, facts.startedAt)),
  };
}

/** Of the bundle that started the wait: a cleared run may have another version by then. */
function cancelOf(bundleHash: string, deferral: Deferral): Json | null {
  const { cancelInputs, onCancel, trigger } = deferral;
  if (!onCancel) return null;
  return { bundle: bundleHash, trigger, inputs: cancelInputs ?? null } as unknown as Json;
}

function triggerWrite(bundleHash: string, instance: Instance, trigger: TriggerCall): TriggerWrite {
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
    wakeAt: earliest(trigger),
    wakeAfterMs: wake !== null && "afterMs" in wake ? wake.afterMs : null,
    timed,
  };
}

/** No triggerer claims a trigger that never wakes: that of an approval is fired by an answer, or by its timeout. */
function earliest({ kind, timed, wake }: TriggerCall): number | null {
  if (kind === APPROVAL_KIND && timed === null) return Number.POSITIVE_INFINITY;
  return wake !== null && "at" in wake ? Date.parse(wake.at) : null;
}

/**
 * A trigger whose time counts from the beginning of the wait is not shared. Nor is one that waits for webhook calls, in a
 * try that has waited before: the calls that it has not received yet are its own. An answer belongs to one approval.
 */
function isShared(trigger: TriggerCall, { resumedAttempt }: Instance): boolean {
  if (trigger.kind === APPROVAL_KIND) return false;
  if (resumedAttempt !== null && waitsForCalls(trigger)) return false;
  return trigger.wake === null || "at" in trigger.wake;
}

/** Waits, from the words of a task to the rows of a batch, and from a trigger's outcome back to an event of the run. */
import { randomBytes } from "node:crypto";
import type { Json, StartTrigger, TriggerCall } from "@tradewind/sdk/manifest";
import type { Deferral, ErrorFacts } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import type { Instance, Wait } from "../model/index.ts";
import type { DeferralWrite, FiredDeferral, TriggerWrite } from "../store/deferrals.ts";
import { triggerFingerprint } from "../store/trigger-fingerprint.ts";
import type { TriggerOutcome } from "../trigger/contract.ts";
import { sinceRun, waitsForCalls } from "../trigger/trigger-call.ts";
import { waitName } from "./wait-names.ts";

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

export function deferralOf(start: StartTrigger): Deferral {
  return { ...start, name: null, onFailure: "fail" };
}

export function waitOf(deferral: Deferral, at: number, keepsSlot: boolean): Wait {
  const { method, onTimeout, timeoutMs, trigger } = deferral;
  const timeoutAt = timeoutMs === null ? null : at + timeoutMs;
  return { timeoutAt, timeoutMs, onTimeout, keepsSlot, what: waitName(trigger), method };
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
    timeoutAt: waitOf(deferral, at, false).timeoutAt,
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
function isShared(trigger: TriggerCall, { step }: Instance): boolean {
  if (step !== null && waitsForCalls(trigger)) return false;
  return trigger.wake === null || "at" in trigger.wake;
}

/** What a fired wait means for its task. */
export type Sequel =
  /** A worker goes on. */
  | { readonly kind: "resume" }
  | { readonly kind: "success"; readonly output: Json }
  | { readonly kind: "failed"; readonly error: ErrorFacts; readonly retry: boolean }
  | { readonly kind: "skipped"; readonly reason: string | null };

export function sequelOf(fired: FiredDeferral): Sequel {
  const outcome = fired.outcome as unknown as TriggerOutcome;
  // Neither a method nor a name to go on at: the node is its trigger, and the event its output.
  const isWhole = fired.method === null && fired.name === null;
  switch (outcome.kind) {
    case "event":
      return isWhole ? { kind: "success", output: outcome.payload } : { kind: "resume" };
    case "failed":
      if (fired.on_failure === "resume") return { kind: "resume" };
      return { kind: "failed", error: outcome.error, retry: true };
    case "ending": {
      const { ending } = outcome;
      if (ending.kind !== "failed") return ending;
      const error = {
        name: "TriggerFailed",
        message: ending.reason,
        stack: null,
        code: "TASK_FAILED_BY_TRIGGER",
      };
      return { kind: "failed", error, retry: ending.retry };
    }
  }
}

/** What the end of a wait's own time means. `operator`: of the task that waits. */
export function sequelOfTimeout(wait: Wait, operator: string): Sequel {
  const { onTimeout, timeoutAt, timeoutMs, what = "the trigger" } = wait;
  if (onTimeout === "resume") return { kind: "resume" };
  const until = timeoutAt === null ? "" : ` at ${new Date(timeoutAt).toISOString()}`;
  const limit = timeoutMs == null ? "" : ` after its timeout of ${durationText(timeoutMs)}`;
  const reason = `waited for ${what}, which had not come when the wait timed out${limit}${until}`;
  if (onTimeout === "skip") return { kind: "skipped", reason };
  const isSensors = isSensorWait(wait, operator);
  const message = isSensors ? `${operator} ${reason}` : reason;
  const code = isSensors ? "TW_SENSOR_TIMEOUT" : "TASK_WAIT_TIMEOUT";
  return {
    kind: "failed",
    error: { name: "TimeoutError", message, stack: null, code },
    retry: onTimeout === "fail",
  };
}

/**
 * A sensor ends for good when its time is over, and goes on at its own method, or has its event for its output; then
 * it is known by its name alone. In the other modes its own process says so, by the same code.
 */
function isSensorWait({ method, onTimeout }: Wait, operator: string): boolean {
  return onTimeout === "fatal" && (method === "fired" || (method === null && operator.endsWith("Sensor")));
}

/** The time of the whole try is up, waits included. */
export function timeoutError(limitMs: number): ErrorFacts {
  const message = `the task waited longer than its timeout of ${durationText(limitMs)} allows`;
  return { name: "TimeoutError", message, stack: null, code: "TASK_TIMEOUT" };
}

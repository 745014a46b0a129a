/** Waits: from the request of a task to the effect of the wait's end. */
import { waitedFor } from "@tradewind/sdk/builtin-triggers";
import type { Json, StartTrigger } from "@tradewind/sdk/manifest";
import type { Deferral, ErrorFacts, TaskOutcome, TriggerEnding } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import type { Wait } from "./instance.ts";

/** The wait of a task that begins with one. */
export function deferralOf(start: StartTrigger): Deferral {
  return { ...start, name: null, onFailure: "fail" };
}

/** @param keepsSlot The pool counts the task while it waits. */
export function waitOf(deferral: Deferral, at: number, keepsSlot = false): Wait {
  const { method, onTimeout, timeoutMs, trigger } = deferral;
  const timeoutAt = timeoutMs === null ? null : at + timeoutMs;
  return { timeoutAt, timeoutMs, onTimeout, keepsSlot, what: waitedFor(trigger), method };
}

/** How a trigger fired: passed to every wait for it. */
export type TriggerOutcome =
  | {
      readonly kind: "event";
      readonly payload: Json;
      readonly key: string | null;
      /** The webhook calls in the event, by webhook name: a wait that received them does not receive them again. */
      readonly calls?: Readonly<Record<string, number>>;
      /** The versions of the signals in the event, for the record of their effects. */
      readonly signals?: readonly number[];
    }
  | { readonly kind: "ending"; readonly ending: TriggerEnding }
  /** It threw, returned without an event, could not be loaded, or blocked its process. */
  | { readonly kind: "failed"; readonly error: ErrorFacts };

/** What the end of a wait means: the task's code resumes, or the attempt ends as if its process had reported this. */
export type WaitResult =
  | { readonly kind: "resume" }
  | Extract<TaskOutcome, { kind: "success" | "failed" | "skipped" }>;

/** The effect of a fired trigger. */
export function resultOfFired(
  { method, name, onFailure }: Pick<Deferral, "method" | "name" | "onFailure">,
  outcome: TriggerOutcome,
): WaitResult {
  switch (outcome.kind) {
    case "event": {
      // Without a method or a name to resume at, the trigger is the whole task, and its event is the output.
      const isWhole = method === null && name === null;
      return isWhole ? { kind: "success", output: outcome.payload, skip: [] } : { kind: "resume" };
    }
    case "failed":
      if (onFailure === "resume") return { kind: "resume" };
      return { kind: "failed", error: outcome.error, retry: true };
    case "ending": {
      const { ending } = outcome;
      if (ending.kind === "success") return { ...ending, skip: [] };
      if (ending.kind === "skipped") return ending;
      const error = failure("TriggerFailed", "TASK_FAILED_BY_TRIGGER", ending.reason);
      return { kind: "failed", error, retry: ending.retry };
    }
  }
}

/** The properties of the task that the end of a wait depends on. */
export interface WaitingTask {
  readonly operator: string;
  readonly isSensor?: boolean | undefined;
  readonly timeoutMs: number | null;
}

/** The effect of a timeout: that of the wait, or that of the whole try, which began at `startedAt`. */
export function resultOfTimeout(
  wait: Wait,
  task: WaitingTask,
  { at, startedAt }: { readonly at: number; readonly startedAt: number | null },
): WaitResult {
  const { timeoutMs } = task;
  if (timeoutMs !== null && startedAt !== null && startedAt + timeoutMs <= at) {
    const message = `the task exceeded its timeout of ${durationText(timeoutMs)} while waiting`;
    return { kind: "failed", error: failure("TimeoutError", "TASK_TIMEOUT", message), retry: true };
  }
  const { onTimeout, timeoutAt, what = "the trigger" } = wait;
  if (onTimeout === "resume") return { kind: "resume" };
  const until = timeoutAt === null ? "" : ` at ${new Date(timeoutAt).toISOString()}`;
  const limit = wait.timeoutMs == null ? "" : ` after its timeout of ${durationText(wait.timeoutMs)}`;
  const reason = `waited for ${what}, but the wait timed out${limit}${until}`;
  if (onTimeout === "skip") return { kind: "skipped", reason };
  // A sensor's own wait is not retried. In its other modes the process reports the same code.
  const isSensors = task.isSensor === true && onTimeout === "fatal";
  const error = isSensors
    ? failure("TimeoutError", "TW_SENSOR_TIMEOUT", `${task.operator} ${reason}`)
    : failure("TimeoutError", "TASK_WAIT_TIMEOUT", reason);
  return { kind: "failed", error, retry: onTimeout === "fail" };
}

function failure(name: string, code: string, message: string): ErrorFacts {
  return { name, message, stack: null, code };
}

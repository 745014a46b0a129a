/** What a wait that is over means for its task: the rules of the scheduler (schedule/waiting.ts of the engine). */
import type { Instance, Wait } from "@tradewind/engine/model";
import type { Json, StartTrigger } from "@tradewind/sdk/manifest";
import type { Deferral, ErrorFacts, TaskOutcome, TriggerEnding } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";

/** How a trigger came to fire. */
export type TriggerOutcome =
  | { readonly kind: "event"; readonly payload: Json }
  | { readonly kind: "ending"; readonly ending: TriggerEnding }
  | { readonly kind: "failed"; readonly error: ErrorFacts };

/** What ends a try. */
export type TryEnd = Extract<TaskOutcome, { kind: "success" | "failed" | "skipped" }>;

/** "resume": the task's code goes on. */
export type Sequel = { readonly kind: "resume" } | TryEnd;

/** The wait of a task that begins with one. */
export function deferralOf(start: StartTrigger): Deferral {
  return { ...start, name: null, onFailure: "fail" };
}

export function waitOf({ method, onTimeout, timeoutMs }: Deferral, at: number): Wait {
  return {
    timeoutAt: timeoutMs === null ? null : at + timeoutMs,
    timeoutMs,
    onTimeout,
    keepsSlot: false,
    method,
  };
}

export function sequelOf({ method, name, onFailure }: Deferral, outcome: TriggerOutcome): Sequel {
  switch (outcome.kind) {
    case "event":
      // Neither a method nor a name to go on at: the task is its trigger, and the event its output.
      return method === null && name === null
        ? { kind: "success", output: outcome.payload, skip: [] }
        : { kind: "resume" };
    case "failed":
      return onFailure === "resume"
        ? { kind: "resume" }
        : { kind: "failed", error: outcome.error, retry: true };
    case "ending": {
      const { ending } = outcome;
      if (ending.kind === "skipped") return ending;
      if (ending.kind === "success") return { ...ending, skip: [] };
      const error = failure("TriggerFailed", "TASK_FAILED_BY_TRIGGER", ending.reason);
      return { kind: "failed", error, retry: ending.retry };
    }
  }
}

/** The wait's own time is over. */
export function sequelOfTimeout({ node, wait }: Instance): Sequel {
  const { method, onTimeout, timeoutAt, timeoutMs } = wait as Wait;
  if (onTimeout === "resume") return { kind: "resume" };
  const limit = timeoutMs == null ? "" : ` after its timeout of ${durationText(timeoutMs)}`;
  if (onTimeout === "skip") return { kind: "skipped", reason: `the wait timed out${limit}` };
  const until = timeoutAt === null ? "" : ` at ${new Date(timeoutAt).toISOString()}`;
  const message = `the trigger had not fired when the wait timed out${limit}${until}`;
  const isSensors = method === "fired" || (method === null && node.manifest.operator.endsWith("Sensor"));
  const code = isSensors && onTimeout === "fatal" ? "TW_SENSOR_TIMEOUT" : "TASK_WAIT_TIMEOUT";
  const error = failure("TimeoutError", code, message);
  return { kind: "failed", error, retry: onTimeout === "fail" };
}

/** The time of the whole try is over, waits included. */
export function sequelOfTaskTimeout(limitMs: number): Sequel {
  const message = `the task waited longer than its timeout of ${limitMs} ms allows`;
  return { kind: "failed", error: failure("TimeoutError", "TASK_TIMEOUT", message), retry: true };
}

function failure(name: string, code: string, message: string): ErrorFacts {
  return { name, message, stack: null, code };
}

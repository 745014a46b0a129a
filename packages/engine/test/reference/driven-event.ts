/** The events of a signal-driven run, and the state of a task in the reference. */
import type { SignalRule } from "@tradewind/sdk/manifest";
import { isEnd, type ReferenceState } from "./reference-rules.ts";

export type DrivenState = ReferenceState | "restarting";
export type Action = SignalRule["action"];

/** Versions of signals. A restarted task keeps the cause of its start. */
export interface DrivenCause {
  readonly started: readonly number[];
  readonly restarted: readonly number[];
}

export const NO_CAUSE: DrivenCause = { started: [], restarted: [] };

export interface DrivenTask {
  readonly id: string;
  state: DrivenState;
  /** Tries begun so far. */
  tries: number;
  /** The last try that is retried when it fails. */
  limit: number;
  losses: number;
  /** Set when the current try has deferred and resumes after its wait. */
  isHalfway: boolean;
  /** The causes of the pending starts. */
  starts: readonly DrivenCause[];
  /** The cause of the latest try. */
  cause: DrivenCause;
  /** The current attempt is being stopped. */
  isStopping: boolean;
  /** The end follows from the rest of the run: no attempt reported it, no user set it, and no stop caused it. */
  isImplied: boolean;
  /** The database has this state. */
  isStored: boolean;
  /** The database has the current attempt as queued or running, and lacks at most its end. */
  isAttemptStored: boolean;
}

export type DrivenEvent =
  | { readonly what: "signal"; readonly key: string; readonly version: number }
  | { readonly what: "order"; readonly of: string; readonly action: Action }
  | { readonly what: "close" }
  /** A due time of a task with `every`: adds a start only if none is pending. */
  | { readonly what: "tick"; readonly of: string }
  | {
      readonly what: "queue" | "start" | "succeed" | "skip" | "defer" | "resume" | "reschedule" | "wake";
      readonly of: string;
    }
  | { readonly what: "fail"; readonly of: string; readonly retry: boolean }
  | { readonly what: "lose"; readonly of: string; readonly budget: number | null }
  /** A manual edit. A run that had ended begins again with only the states of its tasks. */
  | {
      readonly what: "edit";
      readonly clear: readonly string[];
      readonly mark: readonly string[];
      readonly as: "success" | "failed" | "skipped";
    }
  /** A user ends the run. */
  | { readonly what: "cancel"; readonly as: "success" | "failed" }
  /** All states are committed. */
  | { readonly what: "store" }
  /** Finished tasks with pending starts begin again, if their end is stored or they have no downstream. */
  | { readonly what: "again" };

export function isEnded(state: DrivenState): boolean {
  return state !== "restarting" && isEnd(state);
}

/** What happens to a driven run, and what the reference sees of a task. */
import type { SignalRule } from "@tradewind/sdk/manifest";
import { isEnd, type ReferenceState } from "./reference-rules.ts";

export type DrivenState = ReferenceState | "restarting";
export type Action = SignalRule["action"];

/** Versions of signals. What was restarted keeps what had started it. */
export interface DrivenCause {
  readonly started: readonly number[];
  readonly restarted: readonly number[];
}

export const NO_CAUSE: DrivenCause = { started: [], restarted: [] };

export interface DrivenTask {
  readonly id: string;
  state: DrivenState;
  /** Begun so far. */
  tries: number;
  /** A try up to this one is followed by another when it fails. */
  limit: number;
  losses: number;
  /** It has waited in this try, and goes on from there. */
  isHalfway: boolean;
  /** Starts that wait: what each is due to. */
  starts: readonly DrivenCause[];
  /** What the try that began last is due to. */
  cause: DrivenCause;
  /** What is under way is to stop. */
  isStopping: boolean;
  /** Its end follows from the rest of the run: no attempt reported it, no person set it, nothing stopped it. */
  isImplied: boolean;
  /** Its state is the one in the database. */
  isStored: boolean;
  /** The database has its current attempt, under way: all that it may lack is how that ended. */
  isAttemptStored: boolean;
}

export type DrivenEvent =
  | { readonly what: "signal"; readonly key: string; readonly version: number }
  | { readonly what: "order"; readonly of: string; readonly action: Action }
  | { readonly what: "close" }
  /** The times of a task: worth one start, however many wait. */
  | { readonly what: "tick"; readonly of: string }
  | {
      readonly what: "queue" | "start" | "succeed" | "skip" | "defer" | "resume" | "reschedule" | "wake";
      readonly of: string;
    }
  | { readonly what: "fail"; readonly of: string; readonly retry: boolean }
  | { readonly what: "lose"; readonly of: string; readonly budget: number | null }
  /** By hand. In a run that has ended, it begins again with nothing but the states of its tasks. */
  | {
      readonly what: "edit";
      readonly clear: readonly string[];
      readonly mark: readonly string[];
      readonly as: "success" | "failed" | "skipped";
    }
  /** By hand: the run ends now. */
  | { readonly what: "cancel"; readonly as: "success" | "failed" }
  /** All states are in the database now. */
  | { readonly what: "store" }
  /** Tasks that have finished do what they were asked to, if their end is stored or no task comes after them. */
  | { readonly what: "again" };

export function isEnded(state: DrivenState): boolean {
  return state !== "restarting" && isEnd(state);
}

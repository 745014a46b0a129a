/** How the engine ends a job early. */
import { durationText } from "@tradewind/sdk/wording";
import type { CancelTerms } from "../contract.ts";

type Cancel = { readonly why: "cancel"; readonly reason: string } & CancelTerms;

export type Interference =
  | Cancel
  | { readonly why: "timeout"; readonly limitMs: number }
  | { readonly why: "memory"; readonly limitMb: number; readonly usedMb: number }
  /** The executor stops, or has no lease any more. */
  | { readonly why: "stop"; readonly reason: string }
  /** The child sent something that is not a message of the protocol, so it cannot report its end either. */
  | { readonly why: "protocol"; readonly what: string };

/**
 * A cancel replaces an earlier interference. It keeps the success of the attempt only if the earlier one did: an attempt
 * that timed out, or that was cancelled without keeping its success, stays so. A cancel of an executor that stops
 * (`isLost`) replaces nothing: it only shortens the grace period.
 */
export function overruled(earlier: Interference | null, cancel: Cancel): Interference {
  if (cancel.isLost === true && earlier !== null) return earlier;
  const wasKept = earlier === null || (earlier.why === "cancel" && earlier.keepsSuccess === true);
  return wasKept ? cancel : { ...cancel, keepsSuccess: false };
}

/** A graceful stop, which is no reason for a warning in the log of the task. */
export function isGraceful(interference: Interference): boolean {
  return (
    interference.why === "cancel" && (interference.keepsSuccess === true || interference.isLost === true)
  );
}

/** The line in the log of the task. */
export function announce(interference: Interference): string {
  switch (interference.why) {
    case "cancel":
      return `${isGraceful(interference) ? "Asked to stop" : "Cancelled"}: ${interference.reason}.`;
    case "timeout":
      return `The timeout of ${durationText(interference.limitMs)} has passed: asking the task to stop.`;
    case "memory":
      return `Uses ${interference.usedMb} MB of memory, its limit is ${interference.limitMb} MB: killing it.`;
    case "stop":
      return `Killed: ${interference.reason}.`;
    case "protocol":
      return `Its process ${interference.what} over the engine's own channel: killing it.`;
  }
}

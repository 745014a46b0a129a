/**
 * From what was seen of an attempt's process to the outcome that is reported: pure, and complete. What was done to
 * the process (cancelled, stopped, out of time or memory) weighs more than what the process then said or how it died.
 */
import type { ErrorFacts, TaskOutcome } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import type { AttemptOutcome } from "../../model/index.ts";
import type { CancelTerms, SignalAction } from "../contract.ts";
import type { JobOutcome } from "./protocol.ts";

type Cancel = { readonly why: "cancel"; readonly reason: string } & CancelTerms;

/** Why the supervisor interfered. */
export type Interference =
  | Cancel
  | { readonly why: "timeout"; readonly limitMs: number }
  | { readonly why: "memory"; readonly limitMb: number; readonly usedMb: number }
  | { readonly why: "stop"; readonly reason: string }
  /** What it said cannot be understood, so it can report no end either. */
  | { readonly why: "protocol"; readonly what: string };

/** How the process came to its end with an attempt, a callback or a reaction. */
export interface Ending {
  readonly interference: Interference | null;
  readonly report: {
    readonly outcome: JobOutcome;
    readonly aborted: boolean;
    readonly dropped: number;
    readonly large?: true;
    readonly env?: readonly string[];
  } | null;
  /** Set when there is no report: the process is gone. */
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
  readonly errorTail: readonly string[];
}

/**
 * A cancel overrules what was done before: the scheduler does not want the outcome that would have. Only its success
 * may still be wanted, if nobody has done without it: an attempt that was out of time, or cancelled for good, stays so.
 * An executor that stops (`isLost`) overrules nothing: it only has less time.
 */
export function overruled(earlier: Interference | null, cancel: Cancel): Interference {
  if (cancel.isLost === true && earlier !== null) return earlier;
  const wasKept = earlier === null || (earlier.why === "cancel" && earlier.keepsSuccess === true);
  return wasKept ? cancel : { ...cancel, keepsSuccess: false };
}

/** A process that is gone without a report has failed, whatever its exit code: only the task says that it is done. */
export function attemptOutcome(subject: string, ending: Ending): AttemptOutcome {
  const { interference, report } = ending;
  const reported = report === null || "ok" in report.outcome ? null : report.outcome;
  if (interference?.why === "cancel" && interference.isLost !== true) {
    if (interference.keepsSuccess !== true || reported?.kind !== "success") return { kind: "cancelled" };
    return reported;
  }
  // An end of its own: nobody interfered, or the task was through before it could have noticed.
  const own = interference === null || interference.why === "stop" || report?.aborted === false;
  if (reported !== null && own) return reported;
  if (interference?.why === "stop" || interference?.why === "cancel")
    return { kind: "lost", reason: interference.reason };
  // Even if it then ended by itself.
  if (interference?.why === "timeout") return failed(timeoutFacts(subject, interference.limitMs, reported));
  if (interference?.why === "memory") return failed(memoryFacts(subject, interference));
  if (interference?.why === "protocol") return failed(protocolFacts(subject, interference.what));
  return failed(deathFacts(subject, ending.exit ?? { code: null, signal: null }, ending.errorTail));
}

export function callbackError(subject: string, ending: Ending): ErrorFacts | null {
  const { interference, report } = ending;
  if (report !== null && "ok" in report.outcome) return report.outcome.ok ? null : report.outcome.error;
  if (interference?.why === "stop")
    return errorFacts("EXECUTOR_STOPPED", `${subject} was not finished: ${interference.reason}.`);
  if (interference?.why === "timeout") return timeoutFacts(subject, interference.limitMs, null);
  if (interference?.why === "memory") return memoryFacts(subject, interference);
  if (interference?.why === "protocol") return protocolFacts(subject, interference.what);
  return deathFacts(subject, ending.exit ?? { code: null, signal: null }, ending.errorTail);
}

/** What an `onSignal` has answered, or why it has not. */
export function reactionAnswer(
  subject: string,
  ending: Ending,
):
  | { readonly action: SignalAction; readonly error: null }
  | { readonly action: null; readonly error: ErrorFacts } {
  const outcome = ending.report?.outcome;
  if (outcome !== undefined && "action" in outcome) return { action: outcome.action, error: null };
  return { action: null, error: callbackError(subject, ending) ?? unansweredFacts(subject) };
}

/** Stopped as such a task is meant to be: its success counts. */
export function isOrdinary(interference: Interference): boolean {
  return (
    interference.why === "cancel" && (interference.keepsSuccess === true || interference.isLost === true)
  );
}

/** What the log says of it. */
export function announce(interference: Interference): string {
  switch (interference.why) {
    case "cancel":
      return `${isOrdinary(interference) ? "Asked to stop" : "Cancelled"}: ${interference.reason}.`;
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

export function errorFacts(code: string, message: string, stack: string | null = null): ErrorFacts {
  return { name: "TaskError", message, stack, code };
}

function failed(error: ErrorFacts): AttemptOutcome {
  return { kind: "failed", error, retry: true };
}

function timeoutFacts(subject: string, limitMs: number, reported: TaskOutcome | null): ErrorFacts {
  const stack = reported?.kind === "failed" ? reported.error.stack : null;
  return errorFacts("TASK_TIMEOUT", `${subject} exceeded its timeout of ${durationText(limitMs)}.`, stack);
}

function memoryFacts(subject: string, limit: { limitMb: number; usedMb: number }): ErrorFacts {
  return errorFacts(
    "TASK_OUT_OF_MEMORY",
    `${subject} used ${limit.usedMb} MB of memory; its limit is ${limit.limitMb} MB.`,
  );
}

function protocolFacts(subject: string, what: string): ErrorFacts {
  return errorFacts(
    "TASK_PROCESS_DIED",
    `The engine killed the process of ${subject}: it ${what} over the engine's own channel, so that its end could not be reported any more. File descriptors 3 and 4 are not the task's to write to.`,
  );
}

function unansweredFacts(subject: string): ErrorFacts {
  return errorFacts(
    "TASK_PROCESS_DIED",
    `${subject} ended without an answer: return "NONE", "START", "RESTART" or "STOP".`,
  );
}

function deathFacts(
  subject: string,
  exit: { readonly code: number | null; readonly signal: string | null },
  errorTail: readonly string[],
): ErrorFacts {
  const how = exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
  const words = errorTail.length === 0 ? "" : ` Last words on stderr:\n${errorTail.join("\n")}`;
  if (errorTail.some((line) => line.includes("heap out of memory"))) {
    return errorFacts("TASK_OUT_OF_MEMORY", `${subject} filled its JavaScript heap (${how}).${words}`);
  }
  const hint =
    exit.signal === "SIGKILL"
      ? " Not by the engine: perhaps by the system, out of memory."
      : exit.code === 0
        ? " Let it return instead of calling process.exit: only then is it known to be done."
        : "";
  return errorFacts(
    "TASK_PROCESS_DIED",
    `The process of ${subject} ended with ${how} before the task did.${hint}${words}`,
  );
}

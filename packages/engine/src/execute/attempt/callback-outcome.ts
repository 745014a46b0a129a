/** From the end of a callback or a reaction in its child process to what the executor reports. */
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { SignalAction } from "../contract.ts";
import type { ChildEnd } from "./child-end.ts";
import {
  deathFacts,
  errorFacts,
  memoryFacts,
  protocolFacts,
  timeoutFacts,
  unansweredFacts,
} from "./end-errors.ts";

/** null: the callback succeeded. */
export function callbackError(subject: string, end: ChildEnd): ErrorFacts | null {
  const { interference, report } = end;
  if (report !== null && "ok" in report.outcome) return report.outcome.ok ? null : report.outcome.error;
  if (interference?.why === "stop" || (interference?.why === "cancel" && interference.isLost === true))
    return errorFacts("EXECUTOR_STOPPED", `${subject} was not finished: ${interference.reason}.`);
  if (interference?.why === "timeout") return timeoutFacts(subject, interference.limitMs);
  if (interference?.why === "memory") return memoryFacts(subject, interference);
  if (interference?.why === "protocol") return protocolFacts(subject, interference.what);
  return deathFacts(subject, end);
}

/** The answer of an `onSignal`, or the error that replaces it. */
export function reactionAnswer(
  subject: string,
  end: ChildEnd,
):
  | { readonly action: SignalAction; readonly error: null }
  | { readonly action: null; readonly error: ErrorFacts } {
  const outcome = end.report?.outcome;
  if (outcome !== undefined && "action" in outcome) return { action: outcome.action, error: null };
  return { action: null, error: callbackError(subject, end) ?? unansweredFacts(subject) };
}

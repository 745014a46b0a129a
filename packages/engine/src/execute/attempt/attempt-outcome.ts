/**
 * From the end of an attempt in its child process to the outcome that the executor reports. What the engine did to the
 * process (cancel, stop, timeout, memory limit) outweighs what the process then reported or how it died.
 */
import type { ErrorFacts } from "@tradewind/sdk/program";
import { MAX_MESSAGE_LENGTH, maskedError, maskedText } from "../../log/masked-error.ts";
import type { AttemptOutcome, OutputReference } from "../../model/index.ts";
import type { SecretMask } from "../../secret/mask.ts";
import type { ChildEnd } from "./child-end.ts";
import { deathFacts, memoryFacts, protocolFacts, timeoutFacts } from "./end-errors.ts";

/** A process that exits without a report has failed, with any exit code: only a report means that the task is done. */
export function attemptOutcome(subject: string, end: ChildEnd): AttemptOutcome {
  const { interference, report } = end;
  const reported = report === null || "ok" in report.outcome ? null : report.outcome;
  if (interference?.why === "cancel" && interference.isLost !== true) {
    if (interference.keepsSuccess !== true || reported?.kind !== "success") return { kind: "cancelled" };
    return reported;
  }
  // The task ended by itself: without interference, or before the interference could reach its code.
  const isOwn = interference === null || interference.why === "stop" || report?.aborted === false;
  if (reported !== null && isOwn) return reported;
  switch (interference?.why) {
    case "stop":
    case "cancel":
      return { kind: "lost", reason: interference.reason };
    case "timeout": {
      const stack = reported?.kind === "failed" ? reported.error.stack : null;
      return failed(timeoutFacts(subject, interference.limitMs, stack));
    }
    case "memory":
      return failed(memoryFacts(subject, interference));
    case "protocol":
      return failed(protocolFacts(subject, interference.what));
    case undefined:
      return failed(deathFacts(subject, end));
  }
}

/** @param stored Where the large output of a success was stored, or why it could not be. */
export function withStoredOutput(
  outcome: AttemptOutcome,
  stored: OutputReference | ErrorFacts | null,
): AttemptOutcome {
  if (stored === null || outcome.kind !== "success") return outcome;
  return "message" in stored ? failed(stored) : { ...outcome, stored };
}

/** Masks secrets in texts. Outputs are passed on unchanged: they are data. */
export function maskedOutcome(outcome: AttemptOutcome, mask: SecretMask): AttemptOutcome {
  if (outcome.kind === "failed") return { ...outcome, error: maskedError(outcome.error, mask) };
  if (outcome.kind === "skipped" && outcome.reason !== null)
    return { kind: "skipped", reason: maskedText(outcome.reason, mask, MAX_MESSAGE_LENGTH) };
  return outcome;
}

function failed(error: ErrorFacts): AttemptOutcome {
  return { kind: "failed", error, retry: true };
}

/** An attempt's outcome without secrets in its texts. */
import { MAX_MESSAGE_LENGTH, maskedError, maskedText } from "../../log/masked-error.ts";
import type { AttemptOutcome } from "../../model/index.ts";
import type { SecretMask } from "../../secret/mask.ts";

/** Outputs are data, not text for readers: they are passed on as they are. */
export function maskOutcome(outcome: AttemptOutcome, mask: SecretMask): AttemptOutcome {
  if (outcome.kind === "failed") return { ...outcome, error: maskedError(outcome.error, mask) };
  if (outcome.kind === "skipped" && outcome.reason !== null)
    return { kind: "skipped", reason: maskedText(outcome.reason, mask, MAX_MESSAGE_LENGTH) };
  return outcome;
}

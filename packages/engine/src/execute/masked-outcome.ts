/** What an outcome says in words, made fit to be stored and shown: secrets hidden, then shortened, no NUL. */
import type { ErrorFacts } from "@tradewind/sdk/program";
import { cut, tidy } from "./attempt-log.ts";
import type { AttemptOutcome } from "./contract.ts";
import type { SecretMask } from "./mask.ts";

const MAX_MESSAGE_LENGTH = 16 * 1024;
const MAX_STACK_LENGTH = 32 * 1024;

/** Outputs are data, not words: they are passed on as they are. */
export function maskFailure(outcome: AttemptOutcome, mask: SecretMask): AttemptOutcome {
  if (outcome.kind === "failed") return { ...outcome, error: clean(outcome.error, mask) };
  if (outcome.kind === "skipped" && outcome.reason !== null) {
    return { kind: "skipped", reason: words(outcome.reason, mask, MAX_MESSAGE_LENGTH) };
  }
  return outcome;
}

export function clean(error: ErrorFacts, mask: SecretMask): ErrorFacts {
  return {
    name: words(error.name, mask, 200),
    message: words(error.message, mask, MAX_MESSAGE_LENGTH),
    stack: error.stack === null ? null : words(error.stack, mask, MAX_STACK_LENGTH),
    code: error.code === null ? null : words(error.code, mask, 200),
  };
}

function words(text: string, mask: SecretMask, length: number): string {
  return cut(tidy(mask.whole(text)), length);
}

/** Errors as they are stored and shown: without secrets, then truncated, without NUL. */
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { SecretMask } from "../secret/mask.ts";
import { cut, tidy } from "./attempt-log.ts";

export const MAX_MESSAGE_LENGTH = 16 * 1024;
const MAX_STACK_LENGTH = 32 * 1024;

export function maskedError(error: ErrorFacts, mask: SecretMask): ErrorFacts {
  return {
    name: maskedText(error.name, mask, 200),
    message: maskedText(error.message, mask, MAX_MESSAGE_LENGTH),
    stack: error.stack === null ? null : maskedText(error.stack, mask, MAX_STACK_LENGTH),
    code: error.code === null ? null : maskedText(error.code, mask, 200),
  };
}

export function maskedText(text: string, mask: SecretMask, length: number): string {
  return cut(tidy(mask.whole(text)), length);
}

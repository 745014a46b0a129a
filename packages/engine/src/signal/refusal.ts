/**
 * Permanent errors: an unknown token, an invalid listen request. Retrying after one of these would wait forever without
 * an error.
 */
import { EngineError } from "../service/errors.ts";

const FINAL: ReadonlySet<string> = new Set([
  "PERMISSION_DENIED",
  "SIGNAL_INVALID",
  "SIGNAL_POSITION_INVALID",
  "SIGNAL_SERVICE_ADDRESS",
  "SIGNAL_TLS_INVALID",
  "UNAUTHENTICATED",
]);

export function isFinal(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  return FINAL.has(error.code) || error.details?.["isFinal"] === true;
}

/** A remote service rejected the token. gRPC and HTTP report it with the same codes. */
export function accessError(address: string, why: string, isKnown: boolean, cause?: unknown): EngineError {
  return new EngineError(
    isKnown ? "PERMISSION_DENIED" : "UNAUTHENTICATED",
    `The signal service at ${address} rejected the token: ${why}. Use another token.`,
    { cause },
  );
}

/** `isFinal`: retrying would not help. */
export function failedError(address: string, why: string, isFinal: boolean, cause?: unknown): EngineError {
  return new EngineError("SIGNAL_SERVICE_FAILED", `The signal service at ${address} answered ${why}`, {
    cause,
    details: { isFinal },
  });
}

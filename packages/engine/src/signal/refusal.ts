/**
 * What no other attempt can change: a token that is not known, a listener that cannot be. Whoever tries again after one
 * of these waits forever, and nobody learns why.
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

/** A remote service does not let us in. Both ways to it say so with the same codes. */
export function accessError(address: string, why: string, isKnown: boolean, cause?: unknown): EngineError {
  return new EngineError(
    isKnown ? "PERMISSION_DENIED" : "UNAUTHENTICATED",
    `The signal service at ${address} lets nobody in with this token: ${why}. Give it another one.`,
    { cause },
  );
}

/** `isFinal`: it would say the same to another attempt. */
export function failedError(address: string, why: string, isFinal: boolean, cause?: unknown): EngineError {
  return new EngineError("SIGNAL_SERVICE_FAILED", `The signal service at ${address} answered ${why}`, {
    cause,
    details: { isFinal },
  });
}

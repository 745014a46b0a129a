/** The delay between a failed try and the next one. */
import type { TaskManifest } from "@tradewind/sdk/manifest";
import { hash32 } from "../version/hash.ts";

/** No exponential delay exceeds a day. */
export const MAX_BACKOFF_MS = 86_400_000;

/** The try that failed. The jitter depends on it alone, so that every scheduler computes the same delay. */
export interface FailedTry {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
}

/**
 * Constant (`retryBackoff` <= 1): exactly `retryDelayMs`. Exponential: b = delay * backoff^(try - 1), spread over [b, 2b) by
 * a hash of the try, so that tasks that failed together do not retry together. `maxRetryDelayMs` caps both.
 */
export function retryDelayMs(
  policy: Pick<TaskManifest, "retryDelayMs" | "retryBackoff" | "maxRetryDelayMs">,
  failed: FailedTry,
): number {
  const cap = policy.maxRetryDelayMs ?? Number.POSITIVE_INFINITY;
  if (policy.retryBackoff <= 1) return Math.min(policy.retryDelayMs, cap);
  // Bounded, because a delay of 0 times an infinite factor would be NaN.
  const factor = Math.min(policy.retryBackoff ** (failed.tryNumber - 1), Number.MAX_SAFE_INTEGER);
  const grown = Math.ceil(policy.retryDelayMs * factor);
  const base = Math.max(1, Math.min(grown, MAX_BACKOFF_MS));
  const { dagId, taskId, runId, mapIndex, tryNumber } = failed;
  const spread = hash32(`${dagId}#${taskId}#${mapIndex}#${runId}#${tryNumber}`) % base;
  return Math.min(base + spread, MAX_BACKOFF_MS, cap);
}

const FIRST_TRY_MS = 1_000;
const LAST_TRY_MS = 300_000;

/** The delay before a failed timetable call is retried: one second, doubled with each failure, up to 5 minutes. */
export function timetableRetryMs(failures: number): number {
  return Math.min(FIRST_TRY_MS * 2 ** Math.min(failures - 1, 20), LAST_TRY_MS);
}

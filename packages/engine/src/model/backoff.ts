/** How long a failed try waits for the next. */
import type { TaskManifest } from "@tradewind/sdk/manifest";

/** No exponential delay grows beyond a day. */
export const MAX_BACKOFF_MS = 86_400_000;

/** Which try failed; the jitter depends on it alone, so that every scheduler comes to the same answer. */
export interface FailedTry {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
}

/**
 * Constant (`retryBackoff` <= 1): exactly `retryDelayMs`. Exponential: b = delay * backoff^(try - 1), spread over
 * [b, 2b) by a hash of the try, so that tasks that failed together do not come back together. `maxRetryDelayMs` caps
 * both.
 */
export function retryDelayMs(
  policy: Pick<TaskManifest, "retryDelayMs" | "retryBackoff" | "maxRetryDelayMs">,
  failed: FailedTry,
): number {
  const cap = policy.maxRetryDelayMs ?? Number.POSITIVE_INFINITY;
  if (policy.retryBackoff <= 1) return Math.min(policy.retryDelayMs, cap);
  // Bounded, because a delay of 0 times an infinite factor would be no number.
  const factor = Math.min(policy.retryBackoff ** (failed.tryNumber - 1), Number.MAX_SAFE_INTEGER);
  const grown = Math.ceil(policy.retryDelayMs * factor);
  const base = Math.max(1, Math.min(grown, MAX_BACKOFF_MS));
  const { dagId, taskId, runId, mapIndex, tryNumber } = failed;
  const spread = hash32(`${dagId}#${taskId}#${mapIndex}#${runId}#${tryNumber}`) % base;
  return Math.min(base + spread, MAX_BACKOFF_MS, cap);
}

/** FNV-1a with a final mix: the low bits alone must be evenly spread. */
function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

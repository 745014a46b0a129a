import { setTimeout as sleep } from "node:timers/promises";
import { isTransient } from "./connection-error.ts";

const PATIENCE_MS = 30_000;

/** Repeats a call while the database is briefly unavailable. Only for calls that may be repeated. */
export async function retryTransient<T>(
  call: () => Promise<T>,
  isRepeatable: (error: unknown) => boolean = isTransient,
): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, 1_000)) {
    try {
      return await call();
    } catch (error) {
      if (!isRepeatable(error) || performance.now() > until) throw error;
      await sleep(waitMs);
    }
  }
}

import { show } from "../check/errors.ts";
import { durationText } from "../check/wording.ts";
import type { ErrorFacts } from "../runtime/program.ts";

/**
 * The error of a `ctx.until` that timed out.
 *
 * @example
 * ```ts
 * const mail = await ctx.until("mail", new WebhookTrigger({ name: "mail" }), { timeout: "1h" }).catch((error) => {
 *   if (error instanceof DeferralTimeoutError) return null;
 *   throw error;
 * });
 * ```
 */
export class DeferralTimeoutError extends Error {
  override readonly name = "DeferralTimeoutError";
  readonly code = "TW_WAIT_TIMEOUT";
  readonly step: string;
  readonly afterMs: number;

  constructor(step: string, afterMs: number) {
    super(`ctx.until(${show(step)}) timed out after ${durationText(afterMs)}`);
    this.step = step;
    this.afterMs = afterMs;
  }
}

/**
 * The error of a `ctx.until` whose trigger failed; `error` is the error of the trigger.
 *
 * @example
 * ```ts
 * await ctx.until("job", new HttpTrigger({ url: "https://jobs.example/7" })).catch((error) => {
 *   if (error instanceof TriggerFailedError) ctx.log.warn(error.error.message);
 *   throw error;
 * });
 * ```
 */
export class TriggerFailedError extends Error {
  override readonly name = "TriggerFailedError";
  readonly code = "TW_TRIGGER_FAILED";
  readonly step: string;
  readonly error: ErrorFacts;

  constructor(step: string, error: ErrorFacts) {
    super(`the trigger of ctx.until(${show(step)}) failed: ${error.message}`);
    this.step = step;
    this.error = error;
  }
}

/**
 * The retries of a trigger whose poll fails: ten times in a row, each pause twice as long as the last, up to five minutes.
 * A successful poll resets the count. A refusal is not retried.
 */
import type { TriggerHost } from "@tradewind/sdk/program";
import { SecretMask } from "../secret/mask.ts";
import { EngineError } from "../service/errors.ts";
import { reasonOf, TriggerRefusal } from "./trigger-error.ts";

const MAX_FAILURES = 10;
const LONGEST_PAUSE_MS = 300_000;

export class PollBackoff {
  /** Secrets that the trigger has read: they are masked in every message. */
  readonly mask = new SecretMask();
  readonly #host: TriggerHost;
  readonly #intervalMs: number;
  #failures = 0;

  constructor(host: TriggerHost, intervalMs: number) {
    this.#host = host;
    this.#intervalMs = intervalMs;
  }

  succeeded(): void {
    if (this.#failures > 0) this.#host.log("info", "poll succeeded again", { failures: this.#failures });
    this.#failures = 0;
  }

  /** The pause before the next attempt; throws if there is none. */
  failed(error: unknown): number {
    this.#failures++;
    const reason = this.#reason(error);
    if (error instanceof TriggerRefusal) {
      this.#host.log("error", reason, { code: error.code });
      throw this.final(error);
    }
    const failures = this.#failures;
    if (failures >= MAX_FAILURES) {
      this.#host.log("error", `gave up after ${failures} attempts: ${reason}`, { failures });
      throw new EngineError("TRIGGER_GAVE_UP", `Failed ${failures} times in a row, last with: ${reason}`);
    }
    const longest = Math.max(this.#intervalMs, LONGEST_PAUSE_MS);
    const pause = spread(Math.min(this.#intervalMs * 2 ** (failures - 1), longest));
    this.#host.log("warn", `${reason}; attempt ${failures} of ${MAX_FAILURES}`, {
      failures,
      retryInMs: pause,
    });
    return pause;
  }

  /** The error of a poll that is not retried. Without its cause, which is not masked. */
  final(error: unknown): EngineError {
    const reason = this.#reason(error);
    if (error instanceof TriggerRefusal) return new TriggerRefusal(error.code, reason);
    return new EngineError("TRIGGER_CHECK_FAILED", reason);
  }

  #reason(error: unknown): string {
    return this.mask.whole(reasonOf(error));
  }
}

/** Jitter of 10%, so that triggers that began together do not stay in step. */
export function spread(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() * 0.2));
}

import { show, TriggerError } from "../check/errors.ts";
import type { Ending } from "../runtime/ending.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { sleep } from "./sleep.ts";
import { Trigger, type TriggerContext } from "./trigger.ts";

/**
 * The result of `poll`: an event, an ending, or undefined for "not yet".
 * @example const polled: Polled<{ rows: number }> = undefined;
 */
export type Polled<Event> = Event | Ending | undefined;

/** The maximum delay after an error. */
const LONGEST_BACKOFF_MS = 300_000;

/**
 * A trigger that polls: `poll` returns the event, or undefined for "not yet".
 * @see docs/guides/custom-triggers.md for `static interval`, `retries` and `hostLimit`.
 *
 * @example
 * ```ts
 * class JobDone extends PollTrigger<{ job: string }, { rows: number }> {
 *   static id = "acme.job_done";
 *   async poll() {
 *     return (await findJob(this.args.job)).result;
 *   }
 * }
 * ```
 */
export abstract class PollTrigger<Args = void, Event = void> extends Trigger<Args, Event> {
  abstract poll(ctx: TriggerContext): Polled<Event> | Promise<Polled<Event>>;

  /** The polled resource, e.g. a host name: at most `hostLimit` polls of it run at once in a triggerer. */
  host?(args: Args): string;

  override async *run(ctx: TriggerContext): AsyncGenerator<Event | Ending, void> {
    const { intervalMs, retries, hostLimit } = this.#settings();
    const host = this.host?.(this.args);
    const look = async () => this.poll(ctx);
    for (let errors = 0; !ctx.abort.aborted; ) {
      let found: Polled<Event>;
      try {
        found = await (host === undefined ? look() : ctx.limited(host, hostLimit, look));
        errors = 0;
      } catch (error) {
        if (ctx.abort.aborted) return;
        errors++;
        if (errors > retries) throw givenUp(errors, error);
        ctx.log.warn(`poll failed, error ${errors} of ${retries}: ${errorFacts(error).message}`);
      }
      ctx.polled();
      if (found !== undefined) yield found;
      await sleep(nextDelay(intervalMs, errors), ctx.abort);
    }
  }

  #settings(): { intervalMs: number; retries: number; hostLimit: number } {
    const kind = this.constructor as {
      interval?: Duration;
      retries?: number;
      hostLimit?: number;
      name: string;
    };
    const own = (this.args as { interval?: Duration } | undefined)?.interval;
    const { retries = 5, hostLimit = 8 } = kind;
    for (const [name, value, min] of [
      ["retries", retries, 0],
      ["hostLimit", hostLimit, 1],
    ] as const) {
      if (Number.isInteger(value) && value >= min) continue;
      throw new TriggerError(
        "TW_BAD_TRIGGER",
        `trigger class ${kind.name}: static ${name} must be a whole number of ${min} or more, got ${show(value)}`,
      );
    }
    const intervalMs = durationMs(own ?? kind.interval ?? "10s", `trigger class ${kind.name}: interval`);
    // A trigger without a pause would starve others.
    return { intervalMs: Math.max(intervalMs, 1), retries, hostLimit };
  }
}

/** Doubles after each error in a row, with jitter, so that triggers that began together do not stay synchronised. */
function nextDelay(intervalMs: number, errors: number): number {
  const longest = Math.max(intervalMs, LONGEST_BACKOFF_MS);
  return Math.min(intervalMs * 2 ** errors, longest) * (0.9 + 0.2 * Math.random());
}

function givenUp(errors: number, cause: unknown): TriggerError {
  return new TriggerError(
    "TW_POLL_FAILED",
    `poll failed ${errors} times in a row, the last time with: ${errorFacts(cause).message}`,
    { cause },
  );
}

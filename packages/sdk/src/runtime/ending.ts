/** The last word of a trigger that ends the waiting task by itself: nothing of the task has to run for it. */

import { type JsonKind, jsonCopy } from "../check/output-check.ts";
import type { Json } from "../manifest.ts";
import type { TriggerEnding } from "./program.ts";

/** Found by symbol, not by class: a trigger may reach it through another copy of this SDK. */
const ENDING: unique symbol = Symbol.for("tradewind.ending") as never;

/** What {@link endWith} makes: a value to yield from a trigger. */
export interface Ending {
  readonly [ENDING]: TriggerEnding;
}

/**
 * Ends the task that waits for a trigger, without a worker: yield one of these instead of an event.
 *
 * @example
 * ```ts
 * class JobDone extends PollTrigger<{ job: string }, { rows: number }> {
 *   static id = "acme.job_done";
 *   async poll() {
 *     const job = await findJob(this.args.job);
 *     if (job.cancelled) return endWith.skip("the job was cancelled");
 *     return job.error ? endWith.fail(job.error, { retry: false }) : job.result;
 *   }
 * }
 * ```
 */
export const endWith = Object.freeze({
  /** The task succeeds with this output. */
  success(output: Json = null): Ending {
    return ending({ kind: "success", output });
  },
  /** The try fails; `retry: false`: without another try. */
  fail(reason: string, options: { readonly retry?: boolean } = {}): Ending {
    return ending({ kind: "failed", reason: String(reason), retry: options.retry ?? true });
  },
  /** The task is skipped. */
  skip(reason?: string): Ending {
    return ending({ kind: "skipped", reason: reason ?? null });
  },
});

function ending(value: TriggerEnding): Ending {
  return Object.freeze({ [ENDING]: Object.freeze(value) });
}

/** The ending in a yielded value, checked; null for an event. */
export function endingOf(value: unknown, kind: JsonKind): TriggerEnding | null {
  if (typeof value !== "object" || value === null || !(ENDING in value)) return null;
  const ending = (value as Ending)[ENDING];
  if (ending.kind !== "success") return ending;
  return { kind: "success", output: jsonCopy(ending.output, { ...kind, root: "output" }) };
}

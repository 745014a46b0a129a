/** Endings: a trigger yields one to end the waiting task without running code of the task. */

import { type JsonKind, jsonCopy } from "../check/output-check.ts";
import type { Json } from "../manifest.ts";
import type { TriggerEnding } from "./program.ts";

/** A registered symbol, not a class: a trigger may use another copy of the SDK. */
const ENDING: unique symbol = Symbol.for("tradewind.ending") as never;

/**
 * The type of {@link endWith}: a value that a trigger yields.
 * @example const ending: Ending = endWith.skip("the job was cancelled");
 */
export interface Ending {
  readonly [ENDING]: TriggerEnding;
}

/**
 * Ends the task that waits for a trigger without a worker: yield one of these instead of an event.
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
  /** The try fails; with `retry: false` there is no other try. */
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

/** Returns the checked ending in a yielded value; null for an event. */
export function endingOf(value: unknown, kind: JsonKind): TriggerEnding | null {
  if (typeof value !== "object" || value === null || !(ENDING in value)) return null;
  const ending = (value as Ending)[ENDING];
  if (ending.kind !== "success") return ending;
  return { kind: "success", output: jsonCopy(ending.output, { ...kind, root: "output" }) };
}

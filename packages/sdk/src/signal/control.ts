/**
 * Control flow of a task: ending as skipped, or failing without another try. Each is an ordinary value to return from
 * a handler; being an error too, it can be thrown from deep inside code that has another return type. Deferrals
 * (deferral.ts) are control values too.
 */

/** Found by symbol, not by class: user code may reach it through another copy of this SDK. */
export const CONTROL: unique symbol = Symbol.for("tradewind.control") as never;

/** What {@link skip} makes. */
export class TaskSkipped extends Error {
  override readonly name = "TaskSkipped";
  readonly [CONTROL] = "skip";
  readonly reason: string | null;

  constructor(reason: string | null) {
    super(reason ?? "skipped");
    this.reason = reason;
  }
}

/** What {@link fail} makes. */
export class TaskFailed extends Error {
  override readonly name = "TaskFailed";
  readonly [CONTROL] = "fail";
}

/** A value that ends a task in another way than with its output. */
export type Control = TaskSkipped | TaskFailed;

/**
 * Ends the task as skipped; its downstream tasks follow their trigger rules.
 *
 * @example
 * ```ts
 * d.task("load", { inputs: { rows } }, ({ rows }) => (rows.length === 0 ? skip("nothing to load") : load(rows)));
 * // deep inside other code: throw skip("nothing to load");
 * ```
 */
export function skip(reason?: string): TaskSkipped {
  return startingAt(new TaskSkipped(reason ?? null), skip);
}

/**
 * Fails the task at once, whatever retries are left: another try cannot help.
 *
 * @example
 * ```ts
 * d.task("charge", { retries: 3 }, async () => {
 *   const answer = await billing.charge();
 *   return answer.declined ? fail("card declined") : answer.receipt;
 * });
 * ```
 */
export function fail(reason: string, options?: ErrorOptions): TaskFailed {
  return startingAt(new TaskFailed(reason, options), fail);
}

type ControlKind = "skip" | "fail" | "defer" | "reschedule";

const KINDS: ReadonlySet<unknown> = new Set<ControlKind>(["skip", "fail", "defer", "reschedule"]);

/** To be called again from the top after a while, in the same try. Only sensors make it. */
export interface Rescheduled {
  readonly [CONTROL]: "reschedule";
  readonly afterMs: number;
}

export function rescheduled(afterMs: number): Rescheduled {
  return Object.freeze({ [CONTROL]: "reschedule" as const, afterMs });
}

/** Which control value this is, or null for anything else. */
export function controlOf(value: unknown): ControlKind | null {
  try {
    if (typeof value !== "object" || value === null || !(CONTROL in value)) return null;
    const kind = (value as { [CONTROL]: unknown })[CONTROL];
    return KINDS.has(kind) ? (kind as ControlKind) : null;
  } catch {
    // A proxy may throw when it is looked at. Whatever it is, it is none of ours.
    return null;
  }
}

/** Leaves the SDK's own frame out of the stack, so that it begins in the author's code. */
export function startingAt<E extends Error>(error: E, from: (...args: never[]) => unknown): E {
  Error.captureStackTrace?.(error, from);
  return error;
}

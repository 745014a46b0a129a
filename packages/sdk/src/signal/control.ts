/**
 * Control flow of a task: skip it, or fail it without another try. A handler returns such a value, or throws it from
 * code with another return type. Deferrals (deferral.ts) are control values, too.
 */

/** A registered symbol, not a class: user code may use another copy of the SDK. */
export const CONTROL: unique symbol = Symbol.for("tradewind.control") as never;

/**
 * The type of {@link skip}.
 * @example const skipped: TaskSkipped = skip("nothing to load");
 */
export class TaskSkipped extends Error {
  override readonly name = "TaskSkipped";
  readonly [CONTROL] = "skip";
  readonly reason: string | null;

  constructor(reason: string | null) {
    super(reason ?? "skipped");
    this.reason = reason;
  }
}

/**
 * The type of {@link fail}.
 * @example const failed: TaskFailed = fail("card declined");
 */
export class TaskFailed extends Error {
  override readonly name = "TaskFailed";
  readonly [CONTROL] = "fail";
}

/**
 * A value that ends a task without an output.
 * @example const check = (rows: number): Control | number => (rows === 0 ? skip("no rows") : rows);
 */
export type Control = TaskSkipped | TaskFailed;

/**
 * Ends the task as skipped; its downstream tasks follow their trigger rules.
 * @example d.task("load", { inputs: { rows } }, ({ rows }) => (rows.length === 0 ? skip("nothing to load") : load(rows)));
 */
export function skip(reason?: string): TaskSkipped {
  return startingAt(new TaskSkipped(reason ?? null), skip);
}

/**
 * Fails the task without a retry.
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

/** A request to be called again from the top after a delay, in the same try; only sensors create it. */
export interface Rescheduled {
  readonly [CONTROL]: "reschedule";
  readonly afterMs: number;
}

export function rescheduled(afterMs: number): Rescheduled {
  return Object.freeze({ [CONTROL]: "reschedule" as const, afterMs });
}

/** The kind of a control value; null for any other value. */
export function controlOf(value: unknown): ControlKind | null {
  try {
    if (typeof value !== "object" || value === null || !(CONTROL in value)) return null;
    const kind = (value as { [CONTROL]: unknown })[CONTROL];
    return KINDS.has(kind) ? (kind as ControlKind) : null;
  } catch {
    // A proxy may throw when it is inspected; it is not a control value.
    return null;
  }
}

/** Removes the SDK's own frame from the stack, so that it begins in the author's code. */
export function startingAt<E extends Error>(error: E, from: (...args: never[]) => unknown): E {
  Error.captureStackTrace?.(error, from);
  return error;
}

/**
 * What can be waited for: a trigger of the author's or one that the engine knows. Of either only its call is stored,
 * an id and JSON arguments. Found by symbol, not by class: a trigger may come from a package with its own copy of this
 * SDK.
 */
import { show, TriggerError } from "./errors.ts";
import type { EventIsJson } from "./json.ts";
import type { TriggerCall } from "./manifest.ts";

/** Where a trigger answers its call. */
export const CALL: unique symbol = Symbol.for("tradewind.triggerCall") as never;

export declare const EVENT: unique symbol;

/** Any trigger that fires with `Event`. */
export interface Waitable<Event> {
  /** `now`: when the wait begins; null where that is not known yet, because the DAG is being defined. */
  [CALL](now: Date | null): TriggerCall;
  readonly [EVENT]?: Event;
}

/** What a trigger fires with. */
export type EventOf<W> = W extends Waitable<infer Event> ? Event : never;

/** A trigger, refused by the compiler when what it fires with is not JSON. */
export type WaitableJson<Event> = Waitable<Event> & EventIsJson<Event>;

export function isWaitable(value: unknown): value is Waitable<unknown> {
  return typeof value === "object" && value !== null && CALL in value;
}

/**
 * What is stored of a trigger: its id and its arguments, checked.
 *
 * @example
 * ```ts
 * const { kind, args } = serialise(new FileTrigger({ path: "/data/in/*.csv" }));
 * ```
 */
export function serialise(trigger: Waitable<unknown>): TriggerCall {
  return callOf(trigger, new Date());
}

/** As {@link serialise}, for a wait that begins some time after the DAG was defined. */
export function callAtDefinition(trigger: unknown): TriggerCall {
  return callOf(trigger, null);
}

function callOf(trigger: unknown, now: Date | null): TriggerCall {
  if (isWaitable(trigger)) return trigger[CALL](now);
  throw new TriggerError(
    "TW_BAD_TRIGGER",
    `${show(trigger)} is not a trigger; give an instance of a Trigger class`,
  );
}

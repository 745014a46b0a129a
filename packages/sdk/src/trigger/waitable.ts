/**
 * What can be waited for: a trigger of the author's or one that the engine knows. Of either only its call is stored,
 * an id and JSON arguments. Found by symbol, not by class: a trigger may come from a package with its own copy of this
 * SDK.
 */
import { show, TriggerError } from "../check/errors.ts";
import type { EventIsJson } from "../check/json.ts";
import type { Json, TriggerCall } from "../manifest.ts";
import type { RunFacts } from "../runtime/program.ts";

/** Where a trigger answers its call. */
export const CALL: unique symbol = Symbol.for("tradewind.triggerCall") as never;

/** Where something that is waited for turns its event into what the author gets. */
export const RECEIVE: unique symbol = Symbol.for("tradewind.receive") as never;

export declare const EVENT: unique symbol;

/** Any trigger that fires with `Event`. */
export interface Waitable<Event> {
  /**
   * `now`: when the wait begins; null where that is not known yet, because the DAG is being defined. `listener`: who
   * waits; null where it is not a function task.
   */
  [CALL](now: Date | null, listener?: Listener | null): TriggerCall;
  /** Left out where the event is handed on as it is. */
  [RECEIVE]?(event: Json, listener: Listener): Promise<unknown>;
  readonly [EVENT]?: Event;
}

/** A function task that waits: what signals need to know of it. */
export interface Listener {
  readonly run: RunFacts;
  readonly conf: Json;
  /** The version of the last signal that it has taken, by the name of what it listened to. */
  readonly taken: Map<string, number>;
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

/** As {@link serialise}, for a wait of a function task. */
export function callFor(listener: Listener, trigger: Waitable<unknown>): TriggerCall {
  return callOf(trigger, new Date(), listener);
}

/** As {@link serialise}, for a wait that begins some time after the DAG was defined. */
export function callAtDefinition(trigger: unknown): TriggerCall {
  return callOf(trigger, null);
}

function callOf(trigger: unknown, now: Date | null, listener: Listener | null = null): TriggerCall {
  if (isWaitable(trigger)) return trigger[CALL](now, listener);
  throw new TriggerError(
    "TW_BAD_TRIGGER",
    `${show(trigger)} is not a trigger; give an instance of a Trigger class`,
  );
}

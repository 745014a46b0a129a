/**
 * Triggers, custom or built in. Only the call of a trigger is stored: an id and JSON arguments. Recognised by symbol,
 * not by class: a trigger may come from another copy of the SDK.
 */
import { show, TriggerError } from "../check/errors.ts";
import type { EventIsJson } from "../check/json.ts";
import type { Json, TriggerCall } from "../manifest.ts";
import type { RunFacts } from "../runtime/program.ts";

/** The key of the function that returns a trigger's call. */
export const CALL: unique symbol = Symbol.for("tradewind.triggerCall") as never;

/** The key of the function that turns a stored event into the value for the author. */
export const RECEIVE: unique symbol = Symbol.for("tradewind.receive") as never;

export declare const EVENT: unique symbol;

/**
 * A trigger or a signal whose event is an `Event`.
 * @example const wait = (trigger: Waitable<FileEvent>) => d.trigger("file", trigger, { timeout: "6h" });
 */
export interface Waitable<Event> {
  /**
   * `now`: when the wait begins; null while the DAG is being defined. `listener`: the waiting function task, or null.
   */
  [CALL](now: Date | null, listener?: Listener | null): TriggerCall;
  /** Missing if the author receives the event unchanged. */
  [RECEIVE]?(event: Json, listener: Listener): Promise<unknown>;
  readonly [EVENT]?: Event;
}

/** The facts about a waiting function task that signals need. */
export interface Listener {
  readonly run: RunFacts;
  readonly conf: Json;
  /** The version of the last signal that it has taken, by name and match. */
  readonly taken: Map<string, number>;
}

/**
 * The event type of a trigger.
 * @example const event: EventOf<DateTimeTrigger> = "2027-01-04T08:00:00.000Z";
 */
export type EventOf<W> = W extends Waitable<infer Event> ? Event : never;

/**
 * A trigger whose event is JSON; otherwise the compiler rejects it.
 * @example const add = <Event>(id: string, trigger: WaitableJson<Event>) => d.trigger(id, trigger);
 */
export type WaitableJson<Event> = Waitable<Event> & EventIsJson<Event>;

export function isWaitable(value: unknown): value is Waitable<unknown> {
  return typeof value === "object" && value !== null && CALL in value;
}

/**
 * Returns the stored form of a trigger: its id and its checked arguments.
 * @example const { kind, args } = serialise(new FileTrigger({ path: "/data/in/*.csv" }));
 */
export function serialise(trigger: Waitable<unknown>): TriggerCall {
  return callOf(trigger, new Date());
}

/** Like {@link serialise}, for a wait of a function task. */
export function callFor(listener: Listener, trigger: Waitable<unknown>): TriggerCall {
  return callOf(trigger, new Date(), listener);
}

/** Like {@link serialise}, for a wait that begins after the DAG was defined. */
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

/**
 * Waits for several triggers: the event of a joint wait, given the events of its members. Events are recorded in the order
 * of arrival; a joint wait may be a member of another one.
 */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";

export const ALL_KIND = "tradewind.all";
export const ANY_KIND = "tradewind.any";

export type JointKind = typeof ALL_KIND | typeof ANY_KIND;

export function isJointKind(kind: string): kind is JointKind {
  return kind === ALL_KIND || kind === ANY_KIND;
}

/** The members of a joint wait, unchecked; none if the call is not a joint wait. */
export function membersOf({
  args,
  kind,
}: Pick<TriggerCall, "args" | "kind">): Readonly<Record<string, TriggerCall>> {
  const members: unknown = isJointKind(kind)
    ? (args as { readonly members?: unknown } | null)?.members
    : null;
  const isRecord = typeof members === "object" && members !== null && !Array.isArray(members);
  return isRecord ? (members as Readonly<Record<string, TriggerCall>>) : {};
}

/** The event of `tradewind.any` when this member has fired. */
export function firstEvent(args: Json, name: string, event: Json): Json {
  const isList = (args as { readonly list?: Json } | null)?.list === true;
  return isList ? { index: Number(name), event } : { name, event };
}

/** The event of a member or of the joint wait. */
export interface MemberEvent {
  readonly payload: Json;
  /** Identifies the event; null: always a new one. */
  readonly key: string | null;
  /** The webhook calls in the event, by webhook name. */
  readonly calls?: Readonly<Record<string, number>>;
  /** The versions of the signals in the event. */
  readonly signals?: readonly number[];
}

/** The events that a joint wait has received. */
export class JointWaitState {
  readonly #call: Pick<TriggerCall, "args" | "kind">;
  readonly #names: readonly string[];
  readonly #events = new Map<string, MemberEvent>();
  /** The key of the members that were received together, in {@link recordSome}. */
  #shared: string | null = "";
  #isOver = false;

  constructor(call: Pick<TriggerCall, "args" | "kind">) {
    this.#call = call;
    this.#names = Object.keys(membersOf(call));
  }

  /** Records the event of one member. Returns the event of the joint wait, once. */
  record(name: string, event: MemberEvent): MemberEvent | null {
    if (this.#isOver || this.#events.has(name)) return null;
    this.#events.set(name, event);
    return this.#whole();
  }

  /** Records the events of some members of `tradewind.all` that another place waited for, with one key. */
  recordSome(events: Readonly<Record<string, Json>>, key: string | null): MemberEvent | null {
    this.#shared = key;
    for (const [name, payload] of Object.entries(events))
      if (!this.#events.has(name)) this.#events.set(name, { payload, key: null });
    return this.#isOver ? null : this.#whole();
  }

  #whole(): MemberEvent | null {
    const whole = this.#call.kind === ANY_KIND ? this.#first() : this.#all();
    this.#isOver = whole !== null;
    return whole;
  }

  #first(): MemberEvent | null {
    for (const [name, { payload, key, ...rest }] of this.#events) {
      const known = key === null ? null : JSON.stringify([name, key]);
      return { payload: firstEvent(this.#call.args, name, payload), key: known, ...rest };
    }
    return null;
  }

  #all(): MemberEvent | null {
    if (this.#events.size < this.#names.length) return null;
    const events = this.#names.map((name) => [name, this.#events.get(name)!] as const);
    const payload = Object.fromEntries(events.map(([name, event]) => [name, event.payload]));
    // Equal events give an equal joint event: after a take-over all of them are found again.
    const keys = events.map(([, { key }]) => key);
    const key = this.#shared === null ? null : JSON.stringify([this.#shared, keys]);
    const calls: Record<string, number> = Object.assign({}, ...events.map(([, event]) => event.calls));
    const signals = events.flatMap(([, event]) => event.signals ?? []);
    return {
      payload,
      key,
      ...(Object.keys(calls).length > 0 && { calls }),
      ...(signals.length > 0 && { signals }),
    };
  }
}

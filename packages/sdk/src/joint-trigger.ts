import type { AllArgs, SignalEvent } from "./builtin-triggers.ts";
import type { Condition } from "./condition.ts";
import { show, TriggerError } from "./errors.ts";
import type { EventIsJson } from "./json.ts";
import type { Json, TriggerCall } from "./manifest.ts";
import {
  CALL,
  type EVENT,
  type EventOf,
  isWaitable,
  type Listener,
  RECEIVE,
  type Waitable,
} from "./waitable.ts";

/** The triggers of a joint wait, by name. */
export type Members = Readonly<Record<string, Waitable<unknown>>>;

/** The events of a joint wait, by the names of its triggers. */
export type EventsOf<M> = { readonly [K in keyof M]: EventOf<M[K]> };

/** As {@link EventsOf}, where a task receives them: the values of signals are what their schemas make of them. */
export type ReceivedOf<M> = {
  readonly [K in keyof M]: M[K] extends Condition<infer Value> ? SignalEvent<Value> : EventOf<M[K]>;
};

/** Refused by the compiler when what one of them fires with is not JSON. */
export type EventsAreJson<M> = { readonly [K in keyof M]: EventIsJson<EventOf<M[K]>> };

/** What {@link all} makes of a record of triggers. */
export class AllTrigger<Events> implements Waitable<Events> {
  declare readonly [EVENT]?: Events;
  readonly #members: Members;

  constructor(members: Members) {
    const names = typeof members === "object" && members !== null ? Object.keys(members) : [];
    const wrong = names.find((name) => !isWaitable(members[name]));
    if (names.length === 0 || wrong !== undefined) {
      const got = wrong === undefined ? show(members) : `${show(members[wrong])} for ${wrong}`;
      throw new TriggerError(
        "TW_BAD_TRIGGER",
        `a wait takes a trigger, a signal, or an object of these, got ${got}`,
      );
    }
    this.#members = { ...members };
  }

  [CALL](now: Date | null, listener: Listener | null = null): TriggerCall {
    const members = Object.fromEntries(
      Object.entries(this.#members).map(([name, trigger]) => [
        name,
        memberCall(name, trigger, now, listener),
      ]),
    );
    const calls = Object.values(members);
    const queues = new Set(calls.map((call) => call.queue));
    if (queues.size > 1) {
      throw new TriggerError(
        "TW_BAD_TRIGGER",
        `triggers that are waited for together need one queue, got ${[...queues].join(", ")}`,
      );
    }
    return {
      kind: "tradewind.all",
      args: { members } satisfies AllArgs as unknown as Json,
      // A member of the author's own needs the bundle, though the joint wait itself does not.
      source: calls.some((call) => call.source === "bundle") ? "bundle" : "builtin",
      queue: calls[0]!.queue,
      replicas: 1,
      wake: latestWake(calls),
      timed: null,
    };
  }

  async [RECEIVE](event: Json, listener: Listener): Promise<unknown> {
    const events = event as Readonly<Record<string, Json>>;
    const received = Object.entries(this.#members).map(async ([name, trigger]) => {
      const own = events[name] ?? null;
      return [name, trigger[RECEIVE] ? await trigger[RECEIVE](own, listener) : own];
    });
    return Object.fromEntries(await Promise.all(received));
  }
}

/**
 * A length of time counts from the beginning of the wait. Only the joint wait knows when that was, and it may be
 * started again elsewhere: so the moment is fixed here.
 */
function memberCall(
  name: string,
  trigger: Waitable<unknown>,
  now: Date | null,
  listener: Listener | null,
): TriggerCall {
  const call = trigger[CALL](now, listener);
  if (call.wake === null || "at" in call.wake) return call;
  if (now === null) {
    throw new TriggerError(
      "TW_BAD_TRIGGER",
      `${name}: a length of time cannot be part of a joint wait that begins without a worker; use a moment, or ctx.until`,
    );
  }
  const moment = new Date(now.getTime() + call.wake.afterMs).toISOString();
  return {
    ...call,
    kind: "tradewind.datetime",
    args: { moment },
    wake: { at: moment },
    timed: { payload: moment },
  };
}

/** Nothing can fire before the last of its members; null when one of them may at any time. */
function latestWake(calls: readonly TriggerCall[]): TriggerCall["wake"] {
  const moments = calls.flatMap(({ wake }) => (wake !== null && "at" in wake ? [wake.at] : []));
  return moments.length < calls.length ? null : { at: moments.sort().at(-1)! };
}

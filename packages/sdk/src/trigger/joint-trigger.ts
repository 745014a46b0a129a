/** Several triggers waited for together: all of them, or the first. */

import { show, TriggerError } from "../check/errors.ts";
import type { EventIsJson } from "../check/json.ts";
import type { Json, TriggerCall } from "../manifest.ts";
import type { Condition } from "../schedule/condition.ts";
import type { AllArgs, AnyArgs, SignalEvent } from "./builtin-triggers.ts";
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

/** What a task receives of one: the values of signals are what their schemas make of them. */
type Received<W> =
  W extends AnyTrigger<unknown, infer First>
    ? First
    : W extends Condition<infer Value>
      ? SignalEvent<Value>
      : EventOf<W>;

/** As {@link EventsOf}, where a task receives them. */
export type ReceivedOf<M> = { readonly [K in keyof M]: Received<M[K]> };

/** Refused by the compiler when what one of them fires with is not JSON. */
export type EventsAreJson<M> = { readonly [K in keyof M]: EventIsJson<EventOf<M[K]>> };

/** What {@link any} of an object fires with, given the events by name: which one fired, and its event. */
export type FirstByName<Events> = {
  readonly [K in keyof Events & string]: { readonly name: K; readonly event: Events[K] };
}[keyof Events & string];

/** What {@link any} of a list fires with, given the events in order: the position of the one that fired, and its event. */
export type FirstByIndex<Events extends readonly unknown[]> = {
  [K in keyof Events & `${number}`]: {
    readonly index: K extends `${infer Index extends number}` ? Index : never;
    readonly event: Events[K];
  };
}[keyof Events & `${number}`];

abstract class JointTrigger {
  protected readonly members: Members;

  constructor(members: Members, what: string) {
    const names = typeof members === "object" && members !== null ? Object.keys(members) : [];
    const wrong = names.find((name) => !isWaitable(members[name]));
    if (names.length === 0 || wrong !== undefined) {
      const got = wrong === undefined ? show(members) : `${show(members[wrong])} for ${wrong}`;
      throw new TriggerError("TW_BAD_TRIGGER", `${what}, got ${got}${conditionRemedy(members, wrong)}`);
    }
    this.members = { ...members };
  }

  /** What both kinds of joint wait have in common. */
  protected call(now: Date | null, listener: Listener | null) {
    const members = Object.fromEntries(
      Object.entries(this.members).map(([name, trigger]) => [name, memberCall(name, trigger, now, listener)]),
    );
    const calls = Object.values(members);
    const queues = new Set(calls.map((call) => call.queue));
    if (queues.size > 1) {
      throw new TriggerError(
        "TW_BAD_TRIGGER",
        `triggers that are waited for together need one queue, got ${[...queues].join(", ")}`,
      );
    }
    checkNesting(members);
    const shared = {
      // A member of the author's own needs the bundle, though the joint wait itself does not.
      source: calls.some((call) => call.source === "bundle") ? ("bundle" as const) : ("builtin" as const),
      queue: calls[0]!.queue,
      replicas: 1 as const,
      timed: null,
      ...(calls.some((call) => call.onCancel) && { onCancel: true as const }),
    };
    return { members, shared, moments: momentsOf(calls) };
  }
}

/** What {@link all} makes of a record of triggers. */
export class AllTrigger<Events> extends JointTrigger implements Waitable<Events> {
  declare readonly [EVENT]?: Events;

  constructor(members: Members) {
    super(members, "a wait takes a trigger, a signal, or an object of these");
  }

  [CALL](now: Date | null, listener: Listener | null = null): TriggerCall {
    const { members, shared, moments } = this.call(now, listener);
    const args: AllArgs = { members };
    // Nothing can fire before the last of its members; null when one of them may at any time.
    const wake = moments === null ? null : { at: moments.at(-1)! };
    return { kind: "tradewind.all", args: args as unknown as Json, wake, ...shared };
  }

  async [RECEIVE](event: Json, listener: Listener): Promise<unknown> {
    const events = event as Readonly<Record<string, Json>>;
    const received = Object.entries(this.members).map(async ([name, trigger]) => {
      const own = events[name] ?? null;
      return [name, trigger[RECEIVE] ? await trigger[RECEIVE](own, listener) : own];
    });
    return Object.fromEntries(await Promise.all(received));
  }
}

/** What {@link any} makes of triggers. `First` is what `ctx.until` answers. */
export class AnyTrigger<Event, First = Event> extends JointTrigger implements Waitable<Event> {
  declare readonly [EVENT]?: Event;
  declare protected readonly first?: First;
  readonly #isList: boolean;

  constructor(triggers: Members | readonly Waitable<unknown>[]) {
    super(triggers as Members, "any() takes triggers and signals, or an object of these");
    this.#isList = Array.isArray(triggers);
  }

  [CALL](now: Date | null, listener: Listener | null = null): TriggerCall {
    const { members, shared, moments } = this.call(now, listener);
    const args: AnyArgs = { members, list: this.#isList };
    const wake = moments === null ? null : { at: moments[0]! };
    return { kind: "tradewind.any", args: args as unknown as Json, wake, ...shared };
  }

  async [RECEIVE](given: Json, listener: Listener): Promise<unknown> {
    const first = given as { readonly name?: string; readonly index?: number; readonly event: Json };
    const trigger = this.members[first.name ?? `${first.index}`];
    const event = trigger?.[RECEIVE] ? await trigger[RECEIVE](first.event, listener) : first.event;
    return { ...first, event };
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
    args: { moment, deltaMs: call.wake.afterMs },
    wake: { at: moment },
    timed: { payload: moment },
  };
}

/** The moments before which the members cannot fire, in order; null when one of them may at any time. */
function momentsOf(calls: readonly TriggerCall[]): string[] | null {
  const moments = calls.flatMap(({ wake }) => (wake !== null && "at" in wake ? [wake.at] : []));
  return moments.length < calls.length ? null : moments.sort();
}

/** Kinds that the engine answers from its own database. */
const ENGINE_KINDS: ReadonlySet<string> = new Set([
  "tradewind.dagrun",
  "tradewind.externaltask",
  "tradewind.signal",
  "tradewind.webhook",
]);

/**
 * The engine itself observes some kinds, and a process of triggers runs the others. Only the outermost joint wait puts
 * events of both together.
 */
function checkNesting(members: Readonly<Record<string, TriggerCall>>): void {
  for (const [name, call] of Object.entries(members)) {
    const kinds = isJoint(call) ? leafKinds(call) : [];
    const run = kinds.find((kind) => !ENGINE_KINDS.has(kind));
    const observed = kinds.find((kind) => ENGINE_KINDS.has(kind));
    if (run === undefined || observed === undefined) continue;
    throw new TriggerError(
      "TW_BAD_TRIGGER",
      `${name}: a joint wait inside another one has either signals, webhooks, runs and tasks of other DAGs, or other triggers, got "${observed}" and "${run}"; write one joint wait, or use one ctx.until after the other`,
    );
  }
}

/** The kinds among its members, at any depth, that the engine answers from its own database. */
export function observedKinds(call: TriggerCall): string[] {
  return leafKinds(call).filter((kind) => ENGINE_KINDS.has(kind));
}

function isJoint({ kind }: TriggerCall): boolean {
  return kind === "tradewind.all" || kind === "tradewind.any";
}

function leafKinds(call: TriggerCall): string[] {
  if (!isJoint(call)) return [call.kind];
  return Object.values((call.args as unknown as AllArgs).members).flatMap(leafKinds);
}

/** For conditions of signals, which look like joint waits and are none: `all(a, b)` of a list, or with tasks. */
function conditionRemedy(members: Members, wrong: string | undefined): string {
  const value: unknown = wrong === undefined ? members : members[wrong];
  const isCondition = typeof value === "object" && value !== null && CONDITION in value;
  return isCondition
    ? "; a condition is for rules and schedules: to wait for all of several, write all({ a, b })"
    : "";
}

const CONDITION = Symbol.for("tradewind.condition");

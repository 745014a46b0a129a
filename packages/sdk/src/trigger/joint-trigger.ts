/** Waits for several triggers: for all of them, or for the first. */

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

/**
 * The triggers of a joint wait, by name.
 * @example const members: Members = { file: new FileTrigger({ path: "/data/a.csv" }), paid: signal("order.paid") };
 */
export type Members = Readonly<Record<string, Waitable<unknown>>>;

/**
 * The events of a joint wait, by the names of its triggers.
 * @example const size = (events: EventsOf<{ csv: FileTrigger }>) => events.csv.size;
 */
export type EventsOf<M> = { readonly [K in keyof M]: EventOf<M[K]> };

/** The value of one trigger as a task receives it: a signal value is parsed by its schema. */
type Received<W> =
  W extends AnyTrigger<unknown, infer First>
    ? First
    : W extends Condition<infer Value>
      ? SignalEvent<Value>
      : EventOf<W>;

/**
 * Like {@link EventsOf}, with parsed signal values.
 * @example const order = (events: ReceivedOf<{ paid: Signal<{ order: string }> }>) => events.paid.value.order;
 */
export type ReceivedOf<M> = { readonly [K in keyof M]: Received<M[K]> };

/**
 * `unknown` per trigger whose event is JSON, otherwise a {@link NotJson}.
 * @example const wait = <const M extends Members>(members: M & EventsAreJson<M>) => all(members);
 */
export type EventsAreJson<M> = { readonly [K in keyof M]: EventIsJson<EventOf<M[K]>> };

/**
 * The event of {@link any} for an object of triggers: the name and the event of the one that fired.
 * @example const text = (first: FirstByName<{ csv: FileEvent; moment: string }>) => `${first.name} fired`;
 */
export type FirstByName<Events> = {
  readonly [K in keyof Events & string]: { readonly name: K; readonly event: Events[K] };
}[keyof Events & string];

/**
 * The event of {@link any} for a list of triggers: the index and the event of the one that fired.
 * @example const isFile = (first: FirstByIndex<[FileEvent, string]>) => first.index === 0;
 */
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

  /** The common part of both kinds of joint waits. */
  protected call(now: Date | null, listener: Listener | null) {
    const members = Object.fromEntries(
      Object.entries(this.members).map(([name, trigger]) => [name, memberCall(name, trigger, now, listener)]),
    );
    const calls = Object.values(members);
    const queues = new Set(calls.map((call) => call.queue));
    if (queues.size > 1) {
      throw new TriggerError(
        "TW_BAD_TRIGGER",
        `the triggers of a joint wait need one queue, got ${[...queues].join(", ")}`,
      );
    }
    checkNesting(members);
    const shared = {
      // A custom member needs the bundle, although the joint wait itself does not.
      source: calls.some((call) => call.source === "bundle") ? ("bundle" as const) : ("builtin" as const),
      queue: calls[0]!.queue,
      replicas: 1 as const,
      timed: null,
      ...(calls.some((call) => call.onCancel) && { onCancel: true as const }),
    };
    return { members, shared, moments: momentsOf(calls) };
  }
}

/**
 * The type of {@link all} for an object of triggers.
 * @example const both: AllTrigger<unknown> = all({ csv: new FileTrigger({ path: "/data/a.csv" }) });
 */
export class AllTrigger<Events> extends JointTrigger implements Waitable<Events> {
  declare readonly [EVENT]?: Events;

  constructor(members: Members) {
    super(members, "a wait takes a trigger, a signal, or an object of these");
  }

  [CALL](now: Date | null, listener: Listener | null = null): TriggerCall {
    const { members, shared, moments } = this.call(now, listener);
    const args: AllArgs = { members };
    // Cannot fire before the last of its members; null if one of them may fire at any time.
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

/**
 * The type of {@link any} for triggers; `First` is the result of `ctx.until`.
 * @example const first: AnyTrigger<unknown> = any({ csv: new FileTrigger({ path: "/data/a.csv" }) });
 */
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
 * A duration counts from the beginning of the wait. Only the joint wait has that time, and it may be restarted
 * elsewhere, so the end is fixed here.
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
      `${name}: a duration cannot be part of a joint wait that begins without a worker; use a moment, or ctx.until`,
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

/** The moments before which the members cannot fire, in order; null if one of them may fire at any time. */
function momentsOf(calls: readonly TriggerCall[]): string[] | null {
  const moments = calls.flatMap(({ wake }) => (wake !== null && "at" in wake ? [wake.at] : []));
  return moments.length < calls.length ? null : moments.sort();
}

/** Kinds whose state is in the engine's database. */
const ENGINE_KINDS: ReadonlySet<string> = new Set([
  "tradewind.dagrun",
  "tradewind.externaltask",
  "tradewind.signal",
  "tradewind.webhook",
]);

/**
 * The engine observes some kinds, and a trigger runner runs the others. Only the outermost joint wait combines events
 * of both.
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

/** The kinds among its members, at any depth, whose state is in the engine's database. */
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

/** The remedy for conditions of signals, which look like joint waits: `all(a, b)` of a list, or with tasks. */
function conditionRemedy(members: Members, wrong: string | undefined): string {
  const value: unknown = wrong === undefined ? members : members[wrong];
  const isCondition = typeof value === "object" && value !== null && CONDITION in value;
  return isCondition
    ? "; a condition is for rules and schedules: to wait for all of several, write all({ a, b })"
    : "";
}

const CONDITION = Symbol.for("tradewind.condition");

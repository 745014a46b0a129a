/**
 * Signals: named, typed values that tasks and other programs send. They start, restart and stop tasks, create runs and
 * end waits. Senders and receivers share one declaration, so the compiler checks both.
 */

import {
  type ConfReference,
  hasReference,
  type JsonMatch,
  matchJson,
  resolved,
} from "../author/params/conf-reference.ts";
import { DagDefinitionError, show, TaskError, TriggerError } from "../check/errors.ts";
import type { IsJson } from "../check/json.ts";
import { knownOptions } from "../check/option-check.ts";
import { jsonCopy } from "../check/output-check.ts";
import {
  describeIssue,
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchemaV1,
} from "../check/standard-schema.ts";
import type { Json, SignalCondition, TriggerCall } from "../manifest.ts";
import { CONDITION, type Condition, type ConditionNode, type VALUE } from "../schedule/condition.ts";
import type { SignalArgs, SignalEvent } from "../trigger/builtin-triggers.ts";
import { CALL, type EVENT, type Listener, RECEIVE, type Waitable } from "../trigger/waitable.ts";
import { checkedName } from "./signal-key.ts";
import { DEFAULT_NAMESPACE, fitsPattern } from "./signal-names.ts";

type Leaf = Extract<SignalCondition, { kind: "signal" }>;
type SignalNode = Extract<ConditionNode, { kind: "signal" }>;

/**
 * The type of a match for `where`: some members of an object, or the whole of another value; values may be
 * `conf("path")`.
 * @example const match: Match<{ order: string; units: number }> = { order: conf("order.id") };
 */
export type Match<T> = unknown extends T ? JsonMatch : [Json] extends [T] ? JsonMatch : MatchOf<T>;

type MatchOf<T> = T extends null | undefined | string | number | boolean
  ? T | ConfReference
  : T extends readonly unknown[]
    ? { readonly [K in keyof T]: Match<T[K]> } | ConfReference
    : { readonly [K in keyof T]?: Match<T[K]> } | ConfReference;

/**
 * A signal, restricted to some values: a condition, and a value for `ctx.until`.
 * @example const paid: SignalLeaf<{ order: string }> = signal<{ order: string }>("order.paid").where({ order: "A-7" });
 */
export class SignalLeaf<Value = Json, Sent = Value> implements Waitable<SignalEvent<Sent>>, Condition<Value> {
  declare readonly [EVENT]?: SignalEvent<Sent>;
  declare readonly [VALUE]?: Value;
  readonly [CONDITION]: SignalNode;

  constructor(node: SignalNode) {
    this[CONDITION] = Object.freeze({ ...node, leaf: Object.freeze(node.leaf) });
  }

  /**
   * Restricts the signal to values that contain `match`: an object matches an object with its members and more; any
   * other value, including a list, matches an equal one.
   *
   * @example
   * ```ts
   * const trained = signal("model.trained", z.object({ name: z.string(), score: z.number() }));
   * d.task("deploy", { on: [start(trained.where({ name: "prices" }))] }, () => publish());
   * ```
   */
  where(match: NonNullable<Match<Sent>>): SignalLeaf<Value, Sent> {
    const at = `signal ${show(this.#leaf.key)}.where()`;
    if (match === null || match === undefined) throw bad(`${at} needs a value; for null use equals(null)`);
    if (this.#leaf.where !== null) throw bad(`${at} was called twice; combine both in one call`);
    return this.#narrowed({ where: matchJson(match, at) });
  }

  /**
   * Is true while the latest value is equal to this one.
   *
   * @example
   * ```ts
   * const mode = signal("line.mode", z.enum(["running", "halted"]));
   * d.task("watch", { on: [start(mode.equals("running")), stop(mode.equals("halted"))] }, () => publish());
   * ```
   */
  equals(value: Sent): SignalLeaf<Value, Sent> {
    const at = `signal ${show(this.#leaf.key)}.equals()`;
    if (this.#leaf.equals !== null) throw bad(`${at} was called twice; use any() for several values`);
    const refused = (message: string) => bad(`${at}: ${message}`);
    return this.#narrowed({
      equals: { value: jsonCopy(value, { root: "value", notJson: refused, tooLarge: refused }) },
    });
  }

  /**
   * Restricts the signal to those that a task of the same run has sent.
   *
   * @example
   * ```ts
   * const halted = signal("line.halted").inRun();
   * d.task("clean", { on: [start(halted)] }, () => publish());
   * ```
   */
  inRun(): SignalLeaf<Value, Sent> {
    return this.#narrowed({ inRun: true });
  }

  [CALL](_now: Date | null, listener: Listener | null = null): TriggerCall {
    const { namespace, key, where, equals, inRun } = this.#leaf;
    const args: SignalArgs = {
      namespace,
      key,
      where: where === null ? null : this.#whereFor(where, listener),
      equals,
      inRun: inRun ? runOf(this.#needed(listener, "inRun()")) : null,
      since: listener?.run.startedAt ?? null,
      after: listener?.taken.get(nameOf(this.#leaf)) ?? null,
    };
    return {
      kind: "tradewind.signal",
      args: args as unknown as Json,
      source: "builtin",
      queue: "default",
      replicas: 1,
      wake: null,
      timed: null,
    };
  }

  async [RECEIVE](event: Json, { taken }: Listener): Promise<unknown> {
    const heard = event as unknown as SignalEvent;
    // Set at once: a wait that begins while the value is validated must not take the same signal.
    taken.set(nameOf(this.#leaf), Math.max(heard.version, taken.get(nameOf(this.#leaf)) ?? 0));
    return { ...heard, value: await receivedValue(heard.key, this[CONDITION].schema, heard.value) };
  }

  get #leaf(): Leaf {
    return this[CONDITION].leaf;
  }

  #narrowed(by: Partial<Leaf>): SignalLeaf<Value, Sent> {
    const narrowed = new SignalLeaf<Value, Sent>({ ...this[CONDITION], leaf: { ...this.#leaf, ...by } });
    Object.freeze(narrowed);
    return narrowed;
  }

  #whereFor(where: Json, listener: Listener | null): Json {
    if (!hasReference(where)) return where;
    return resolved(where, this.#needed(listener, "conf()").conf, `signal ${show(this.#leaf.key)}`);
  }

  #needed(listener: Listener | null, what: string): Listener {
    if (listener !== null) return listener;
    throw new TriggerError(
      "TW_BAD_TRIGGER",
      `signal ${show(this.#leaf.key)}: ${what} needs the run that waits; use it in ctx.until or in a rule of a task`,
    );
  }
}

/**
 * The type of {@link signal}: senders pass a `Sent`, receivers get the `Value` that the schema makes of it.
 * @example const trained: Signal<{ score: number }> = signal<{ score: number }>("model.trained");
 */
export class Signal<Value = Json, Sent = Value> extends SignalLeaf<Value, Sent> {
  readonly kind = "signal";
  readonly namespace: string;
  readonly key: string;

  constructor(node: SignalNode) {
    super(node);
    this.namespace = node.leaf.namespace;
    this.key = node.leaf.key;
  }

  /** Returns whether a received signal is this one with a valid value, and narrows its type. */
  is<H extends AnyIncomingSignal>(heard: H): heard is H & { readonly value: Value } {
    if (typeof heard.invalid === "string") return false;
    return fitsPattern(this.namespace, heard.namespace) && fitsPattern(this.key, heard.key);
  }
}

/**
 * A signal of any type.
 * @example const keys = (signals: AnySignal[]) => signals.map(({ key }) => key);
 */
export interface AnySignal extends Condition {
  readonly kind: "signal";
  readonly namespace: string;
  readonly key: string;
}

interface AnyIncomingSignal {
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
  readonly invalid?: string | null;
}

/**
 * Options of {@link signal}.
 * @example const paid = signal("order.paid", undefined, { namespace: "shop" } satisfies SignalNaming);
 */
export interface SignalNaming {
  /** The namespace of the key, e.g. per team or system (default "default"). */
  readonly namespace?: string;
}

/** Rejected by the compiler if the value to send is not JSON. */
type SendsJson<S extends StandardSchemaV1> = IsJson<SchemaInput<S>, "value">;

/**
 * Declares a signal by its key; a schema or a type argument gives the type of its values, and "*" in a key listens to
 * many.
 * @see docs/guides/signals.md
 *
 * @example
 * ```ts
 * const trained = signal("model.trained", z.object({ name: z.string(), score: z.number() }));
 * await ctx.send(trained, { name: "prices", score: 0.93 });
 * const { value } = await ctx.until("trained", trained.where({ name: "prices" })); // { name: string; score: number }
 * ```
 */
export function signal<T = Json>(key: string, schema?: undefined, options?: SignalNaming): Signal<T>;
export function signal<S extends StandardSchemaV1>(
  key: string,
  schema: S & SendsJson<S>,
  options?: SignalNaming,
): Signal<SchemaOutput<S>, SchemaInput<S>>;
export function signal(key: string, schema?: unknown, options?: SignalNaming): Signal {
  const given = knownOptions(options, ["namespace"], `signal(${show(key)})`);
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw bad(
      `signal(${show(key)}): the schema must be a Standard Schema validator, e.g. z.object({...}), got ${show(schema)}`,
    );
  }
  const leaf: Leaf = {
    kind: "signal",
    namespace: checkedName(given["namespace"] ?? DEFAULT_NAMESPACE, "namespace"),
    key: checkedName(key, "key"),
    where: null,
    equals: null,
    inRun: false,
  };
  const made = new Signal({ kind: "signal", leaf, schema: schema ?? null });
  Object.freeze(made);
  return made;
}

/** Compares the shape, not the class: a signal may come from another copy of the SDK. */
export function isSignal(value: unknown): value is AnySignal {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as AnySignal).kind === "signal" &&
    CONDITION in value
  );
}

/** The JSON of a value to send, after validation. The given value is stored, not the parsed one. */
export async function valueToSend(
  key: string,
  schema: StandardSchemaV1 | null,
  value: unknown,
): Promise<Json> {
  const refused = (message: string) => invalid(key, message);
  const json = jsonCopy(value, {
    root: "value",
    notJson: refused,
    tooLarge: (message) => refused(`${message}; store the data elsewhere and send its address`),
  });
  await receivedValue(key, schema, json);
  return json;
}

/** The parsed value of a received signal, which may come from a program that does not validate. */
export async function receivedValue(
  key: string,
  schema: StandardSchemaV1 | null,
  value: Json,
): Promise<unknown> {
  if (schema === null) return value;
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  throw invalid(key, `value: ${result.issues.map(describeIssue).join("; ")}`);
}

function invalid(key: string, problem: string): TaskError {
  return new TaskError("TW_SIGNAL_INVALID", `signal ${show(key)}: ${problem}`);
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_SIGNAL", message);
}

function nameOf({ namespace, key }: Leaf): string {
  return `${namespace}\n${key}`;
}

function runOf({ run }: Listener): { readonly dagId: string; readonly runId: string } {
  return { dagId: run.dagId, runId: run.runId };
}

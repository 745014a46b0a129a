/**
 * Signals: named, typed values that tasks and other programs send, and that start, restart and stop tasks, make runs
 * and end waits. A signal is declared once and used on both sides, so that the compiler compares them.
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
import { checkedName, DEFAULT_NAMESPACE, fitsPattern } from "./signal-key.ts";

type Leaf = Extract<SignalCondition, { kind: "signal" }>;
type SignalNode = Extract<ConditionNode, { kind: "signal" }>;

/** A part of a value: of an object some members, of anything else the whole. Values may be `conf("path")`. */
export type Match<T> = unknown extends T ? JsonMatch : [Json] extends [T] ? JsonMatch : MatchOf<T>;

type MatchOf<T> = T extends null | undefined | string | number | boolean
  ? T | ConfReference
  : T extends readonly unknown[]
    ? { readonly [K in keyof T]: Match<T[K]> } | ConfReference
    : { readonly [K in keyof T]?: Match<T[K]> } | ConfReference;

/** Some values of a signal: a part of a condition, and what `ctx.until` can wait for. */
export class SignalLeaf<Value = Json, Sent = Value> implements Waitable<SignalEvent<Sent>>, Condition<Value> {
  declare readonly [EVENT]?: SignalEvent<Sent>;
  declare readonly [VALUE]?: Value;
  readonly [CONDITION]: SignalNode;

  constructor(node: SignalNode) {
    this[CONDITION] = Object.freeze({ ...node, leaf: Object.freeze(node.leaf) });
  }

  /**
   * Only signals whose value contains this: an object matches one that has its members, and maybe more; everything
   * else, lists too, matches its equal.
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
    if (this.#leaf.where !== null) throw bad(`${at} was said before; put both into one`);
    return this.#narrowed({ where: matchJson(match, at) });
  }

  /**
   * True while the latest value is this one: another value makes it false again.
   *
   * @example
   * ```ts
   * const mode = signal("line.mode", z.enum(["running", "halted"]));
   * d.task("watch", { on: [start(mode.equals("running")), stop(mode.equals("halted"))] }, () => publish());
   * ```
   */
  equals(value: Sent): SignalLeaf<Value, Sent> {
    const at = `signal ${show(this.#leaf.key)}.equals()`;
    if (this.#leaf.equals !== null) throw bad(`${at} was said before; use any() for several values`);
    const refused = (message: string) => bad(`${at}: ${message}`);
    return this.#narrowed({
      equals: { value: jsonCopy(value, { root: "value", notJson: refused, tooLarge: refused }) },
    });
  }

  /**
   * Only signals that a task of the same run has sent.
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
    // At once: a wait that begins while the value is being checked must not take the same one.
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

/** What {@link signal} makes. `Sent` is what is sent and stored, `Value` what the schema makes of it for who receives. */
export class Signal<Value = Json, Sent = Value> extends SignalLeaf<Value, Sent> {
  readonly kind = "signal";
  readonly namespace: string;
  readonly key: string;

  constructor(node: SignalNode) {
    super(node);
    this.namespace = node.leaf.namespace;
    this.key = node.leaf.key;
  }

  /** Whether something heard is one of this signal, with a value that its schema accepts; for the compiler, too. */
  is<H extends AnyHeard>(heard: H): heard is H & { readonly value: Value } {
    if (typeof heard.invalid === "string") return false;
    return fitsPattern(this.namespace, heard.namespace) && fitsPattern(this.key, heard.key);
  }
}

/** Any signal, whatever its type. */
export interface AnySignal extends Condition {
  readonly kind: "signal";
  readonly namespace: string;
  readonly key: string;
}

interface AnyHeard {
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
  readonly invalid?: string | null;
}

export interface SignalNaming {
  /** Keeps the keys of one team or system apart from those of others ("default"). */
  readonly namespace?: string;
}

/** Refused by the compiler when what is to be sent is not JSON. */
type SendsJson<S extends StandardSchemaV1> = IsJson<SchemaInput<S>, "value">;

/**
 * Declares a signal: a key and, by a schema or a type argument, the type of its values. Values are checked when a task
 * sends one and again when a task receives one. In a signal that is only listened to, "*" stands for any text.
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

/** By shape: it may come from a package with its own copy of the SDK. */
export function isSignal(value: unknown): value is AnySignal {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as AnySignal).kind === "signal" &&
    CONDITION in value
  );
}

/** The JSON of a value to be sent, which satisfies the schema. What is stored is what was given, not what became of it. */
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

/** What the schema makes of a value that was received; it may have been sent by a program that knows no schema. */
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

/**
 * Conditions on signals: what a rule, the end of a run or a schedule waits for. A condition is a value that knows how
 * it is written in a manifest; handles of tasks are resolved by the DAG that they are used in.
 */

import type { AnyOutput, Output } from "../author/handle.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import type { StandardSchemaV1 } from "../check/standard-schema.ts";
import type { ScheduleManifest, SignalCondition } from "../manifest.ts";
import {
  AllTrigger,
  AnyTrigger,
  type EventsAreJson,
  type EventsOf,
  type FirstByIndex,
  type FirstByName,
  type Members,
  type ReceivedOf,
} from "../trigger/joint-trigger.ts";
import { isWaitable, type Waitable } from "../trigger/waitable.ts";

/** Where a condition keeps what it is made of; registered, so that two copies of the SDK agree on it. */
export const CONDITION: unique symbol = Symbol.for("tradewind.condition") as never;

export declare const VALUE: unique symbol;

/** Something that signals make true; `Value` is what they may bring. */
export interface Condition<Value = unknown> {
  readonly [CONDITION]: ConditionNode;
  readonly [VALUE]?: Value;
}

/** What {@link all} and {@link any} take: a signal or some of its values, a task that has to succeed, or a condition. */
export type ConditionPart = Condition | AnyOutput | TimePart;

/** The times of `cron()` and `every()`: a part of conditions on assets in `on()`, and of no others. */
export type TimePart = Extract<ScheduleManifest, { kind: "cron" | "interval" }>;

/** What the signals of a part may bring; that of a task is in its output. */
export type ValueOf<Part> = Part extends Condition<infer Value> ? Value : never;

/** A condition, from the inside. */
export type ConditionNode =
  | {
      readonly kind: "signal";
      readonly leaf: Extract<SignalCondition, { kind: "signal" }>;
      readonly schema: StandardSchemaV1 | null;
    }
  | { readonly kind: "all" | "any"; readonly of: readonly ConditionPart[] };

/**
 * True when all of its parts are; given a record of triggers instead, a trigger that fires when all of them have, with
 * their events by name.
 *
 * @example
 * ```ts
 * const [trained, checked] = [signal("model.trained"), signal("model.checked")];
 * d.task("deploy", { on: [start(all(trained, checked, any(rows, signal("rows.skipped"))))] }, () => publish());
 *
 * const both = all({ file: new FileTrigger({ path: "/data/a.csv" }), hour: new DateTimeTrigger({ moment: "2027-01-04" }) });
 * const { file } = await ctx.until("both", both); // or: ctx.until("both", { file: ..., hour: ... })
 * ```
 */
export function all<const P extends readonly [ConditionPart, ...ConditionPart[]]>(
  ...parts: P
): Condition<ValueOf<P[number]>>;
export function all<const M extends Members>(members: M & EventsAreJson<M>): AllTrigger<EventsOf<M>>;
export function all(...given: unknown[]): Condition | AllTrigger<unknown> {
  const isRecord = given.length === 1 && !isPart(given[0]);
  return isRecord ? new AllTrigger(given[0] as Members) : joined("all", given);
}

/** A list of signals is both: a condition, and something to wait for. Other conditions are no triggers. */
type AnyOf<P extends readonly unknown[]> = Condition<ValueOf<P[number]>> &
  (P extends readonly Waitable<unknown>[] ? AnyTriggerOf<P> : unknown);

type AnyTriggerOf<W extends readonly unknown[]> = AnyTrigger<
  FirstByIndex<EventsOf<W>>,
  FirstByIndex<ReceivedOf<W>>
>;

/**
 * True when one of its parts is. Given triggers, a trigger that fires with the first of them: its event tells which one
 * fired, by `name` for an object of triggers and by `index` for a list.
 *
 * @example
 * ```ts
 * const [failed, drifted] = [signal("serving.failed"), signal("model.drift", z.number())];
 * d.task("serve", { lifetime: "streaming", on: [restart(any(failed, drifted.equals(1)))] }, () => publish());
 *
 * const file = new FileTrigger({ path: "/data/a.csv" });
 * const first = await ctx.until("first", any({ file, failed }));
 * if (first.name === "file") ctx.log.info(first.event.path);
 * ```
 */
export function any<const M extends Members>(
  members: M & EventsAreJson<M>,
): AnyTrigger<FirstByName<EventsOf<M>>, FirstByName<ReceivedOf<M>>>;
export function any<const W extends readonly [Waitable<unknown>, ...Waitable<unknown>[]]>(
  ...triggers: W & EventsAreJson<W>
): W extends readonly ConditionPart[] ? AnyOf<W> : AnyTriggerOf<W>;
export function any<const P extends readonly [ConditionPart, ...ConditionPart[]]>(...parts: P): AnyOf<P>;
export function any(...given: unknown[]): unknown {
  const [only] = given;
  const isRecord = given.length === 1 && typeof only === "object" && !isPart(only) && !isWaitable(only);
  if (isRecord) return new AnyTrigger(only as Members);
  if (given.some((each) => isWaitable(each) && !isPart(each))) return new AnyTrigger(given as never);
  const condition = joined("any", given);
  return given.every(isWaitable) ? Object.freeze(Object.assign(new AnyTrigger(given), condition)) : condition;
}

export function isCondition(value: unknown): value is Condition {
  return typeof value === "object" && value !== null && CONDITION in value;
}

/** Where tasks have no meaning: conditions that are made before the tasks, or outside of any run. */
export function noTasks(where: string): (handle: AnyOutput) => never {
  return () => {
    throw bad(where, "a task cannot be part of this condition; let it send a signal");
  };
}

/**
 * The manifest's form of a condition. `taskOf` answers the id of a handle, or throws when it is not one of the DAG's;
 * `timeOf` what a time is, where it has a meaning.
 */
export function conditionManifest(
  part: unknown,
  where: string,
  taskOf: (handle: AnyOutput) => string,
  timeOf: (time: TimePart) => SignalCondition = noTimes(where),
): SignalCondition {
  if (isHandle(part)) return { kind: "task", taskId: taskOf(part) };
  if (isTime(part)) return timeOf(part);
  if (!isCondition(part)) throw notAPart(where, part);
  const node = part[CONDITION];
  if (node.kind === "signal") return node.leaf;
  return { kind: node.kind, of: node.of.map((each) => conditionManifest(each, where, taskOf, timeOf)) };
}

/** The signals of a condition. */
export function leavesOf(part: ConditionPart): Extract<ConditionNode, { kind: "signal" }>[] {
  if (!isCondition(part)) return [];
  const node = part[CONDITION];
  return node.kind === "signal" ? [node] : node.of.flatMap(leavesOf);
}

function joined(kind: "all" | "any", parts: readonly unknown[]): Condition<never> {
  const wrong = parts.find((part) => !isPart(part));
  if (parts.length === 0 || wrong !== undefined) throw notAPart(`${kind}()`, wrong);
  return Object.freeze({ [CONDITION]: Object.freeze({ kind, of: [...parts] as ConditionPart[] }) });
}

function isPart(value: unknown): value is ConditionPart {
  return isCondition(value) || isHandle(value) || isTime(value);
}

/** By shape: a handle of another DAG is refused by name, where the condition is used. */
function isHandle(value: unknown): value is Output<unknown> {
  return typeof value === "object" && value !== null && (value as AnyOutput).kind === "output";
}

function isTime(value: unknown): value is TimePart {
  const kind = typeof value === "object" && value !== null ? (value as TimePart).kind : null;
  return kind === "cron" || kind === "interval";
}

function noTimes(where: string): (time: TimePart) => never {
  return () => {
    throw bad(where, "cron() and every() are parts of conditions on assets in on(), and of no others");
  };
}

function notAPart(where: string, got: unknown): DagDefinitionError {
  return bad(where, `a condition is made of signals, handles of tasks, all() and any(), got ${show(got)}`);
}

function bad(where: string, problem: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_SIGNAL", `${where}: ${problem}`);
}

/**
 * Conditions on signals, for rules, the end of a run and schedules. The DAG that uses a condition resolves the handles
 * of tasks in it and writes it to its manifest.
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

/** The key of a condition's content; a registered symbol, shared by all copies of the SDK. */
export const CONDITION: unique symbol = Symbol.for("tradewind.condition") as never;

export declare const VALUE: unique symbol;

/**
 * A condition that signals make true; `Value` is the type of their values.
 * @example const when: Condition = all(signal("model.trained"), signal("model.checked"));
 */
export interface Condition<Value = unknown> {
  readonly [CONDITION]: ConditionNode;
  readonly [VALUE]?: Value;
}

/**
 * A part of {@link all} and {@link any}: a signal, a task that must succeed, a condition, or a time.
 * @example const parts: [ConditionPart, ConditionPart] = [signal("model.trained"), rows];
 */
export type ConditionPart = Condition | AnyOutput | TimePart;

/**
 * A time as a part of a condition on assets in `on()`: `cron()` or `every()`.
 * @example const time: TimePart = cron("0 6 * * *");
 */
export type TimePart = Extract<ScheduleManifest, { kind: "cron" | "interval" }>;

/**
 * The type of the signal values of a part.
 * @example const value: ValueOf<Signal<{ order: string }>> = { order: "A-7" };
 */
export type ValueOf<Part> = Part extends Condition<infer Value> ? Value : never;

/** The internal form of a condition. */
export type ConditionNode =
  | {
      readonly kind: "signal";
      readonly leaf: Extract<SignalCondition, { kind: "signal" }>;
      readonly schema: StandardSchemaV1 | null;
    }
  | { readonly kind: "all" | "any"; readonly of: readonly ConditionPart[] };

/**
 * Returns a condition that is true when all parts are; for an object of triggers, a trigger that fires when all have
 * fired.
 *
 * @example
 * ```ts
 * const [trained, checked] = [signal("model.trained"), signal("model.checked")];
 * d.task("deploy", { on: [start(all(trained, checked))] }, () => publish());
 * const { csv } = await ctx.until("both", all({ csv: new FileTrigger({ path: "/data/a.csv" }), checked }));
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

/** A list of signals is both a condition and a trigger. Other conditions are not triggers. */
type AnyOf<P extends readonly unknown[]> = Condition<ValueOf<P[number]>> &
  (P extends readonly Waitable<unknown>[] ? AnyTriggerOf<P> : unknown);

type AnyTriggerOf<W extends readonly unknown[]> = AnyTrigger<
  FirstByIndex<EventsOf<W>>,
  FirstByIndex<ReceivedOf<W>>
>;

/**
 * Returns a condition that is true when one part is; for triggers, a trigger that fires with the first, by `name` or
 * `index`.
 *
 * @example
 * ```ts
 * const [failed, drifted] = [signal("serving.failed"), signal("model.drift", z.number())];
 * d.task("serve", { lifetime: "streaming", on: [restart(any(failed, drifted.equals(1)))] }, () => publish());
 * const first = await ctx.until("first", any({ file: new FileTrigger({ path: "/data/a.csv" }), failed }));
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

/** For conditions that cannot refer to tasks: they are created before the tasks, or outside of a run. */
export function noTasks(where: string): (handle: AnyOutput) => never {
  return () => {
    throw bad(where, "a task cannot be part of this condition; let it send a signal");
  };
}

/**
 * The manifest form of a condition. `taskOf` returns the id of a handle, or throws if the handle belongs to another
 * DAG; `timeOf` returns the leaf of a time where times are allowed.
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

/** Compares the shape: a handle of another DAG is rejected by name where the condition is used. */
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

/**
 * Handles: `d.task`, `d.operator` and `d.group` return them; `inputs` and `after` take them. The owner of a handle is stored
 * outside of it, so that a handle cannot be forged or serialised by accident.
 */
import { DagDefinitionError, show } from "../check/errors.ts";
import type { InputSource, TriggerRule } from "../manifest.ts";
import type { SettledInput } from "../runtime/program.ts";

declare const VALUE: unique symbol;
declare const EACH: unique symbol;

/**
 * The handle of a task: other tasks take it in `inputs` or `after`.
 * @example const double = (d: DagBuilder, n: Output<number>) => d.task("double", { inputs: { n } }, ({ n }) => n * 2);
 */
export interface Output<T> {
  readonly kind: "output";
  readonly dagId: string;
  readonly taskId: string;
  readonly [VALUE]?: T;
}

/**
 * The handle of a mapped task: downstream tasks receive the list of its outputs in the order of the items.
 * @example const sizes: Mapped<number> = d.map("size", { over: ["a", "bc"] }, (text) => text.length);
 */
export interface Mapped<T> extends Output<readonly T[]> {
  readonly [EACH]?: T;
}

/**
 * The handle of a group; `result` is the value that its build function returned.
 * @example const checks: Group<Output<number>> = d.group("checks", (g) => g.task("nulls", () => 0));
 */
export interface Group<T = unknown> {
  readonly kind: "group";
  readonly dagId: string;
  readonly groupId: string;
  readonly result: T;
}

/**
 * The handle of a task with any output.
 * @example const handles: AnyOutput[] = [rows, d.task("count", () => 7)];
 */
export type AnyOutput = Output<unknown>;

/**
 * A handle that the option `after` takes.
 * @example const after: Upstream[] = [rows, d.group("checks", (g) => g.task("nulls", () => 0))];
 */
export type Upstream = AnyOutput | Group;

/**
 * Handles by name, for the option `inputs`.
 * @example const inputs: InputHandles = { rows };
 */
export type InputHandles = Readonly<Record<string, AnyOutput>>;

/**
 * The type of `inputs` of a task without inputs.
 * @example const inputs: NoInputs = {};
 */
export type NoInputs = Record<never, never>;

/**
 * The end state of an input under every rule but `allSuccess`; "pending" means that the task has not ended.
 * @example d.task("sum", { inputs: { rows }, rule: "allDone" }, ({ rows }) => (rows.state === "success" ? rows.value.length : 0));
 */
export type Settled<T> =
  | { readonly state: "success"; readonly value: T }
  | { readonly state: Exclude<SettledInput["state"], "success"> };

/**
 * The inputs as a handler receives them: values under the rule `allSuccess`, otherwise {@link Settled}.
 * @example const count = (inputs: InputValues<{ rows: Output<string[]> }, "allSuccess">) => inputs.rows.length;
 */
export type InputValues<I, Rule> = { readonly [K in keyof I]: InputValue<I[K], Rule> };

type InputValue<O, Rule> =
  O extends Output<infer T>
    ? [Rule] extends ["allSuccess"]
      ? T
      : "allSuccess" extends Rule
        ? RuleNotKnown<"write the rule as a literal: it decides the type of the inputs">
        : O extends { readonly [EACH]?: infer E }
          ? readonly Settled<Exclude<E, undefined>>[]
          : Settled<T>
    : never;

interface RuleNotKnown<Message extends string> {
  readonly problem: Message;
}

/** The handles for the inputs that an operator declares. */
export type HandlesFor<In, Rule extends TriggerRule> = {
  readonly [K in keyof In]: Output<Rule extends "allSuccess" ? In[K] : SettledValue<In[K]>>;
};

type SettledValue<S> = S extends { readonly state: "success"; readonly value: infer T } ? T : never;

/** The facts about a handle that are not part of it. */
interface Facts {
  readonly owner: object;
  /** For an output: the source of its value, and the map inside which it has its declared type. */
  readonly source: InputSource | null;
  readonly map: string | null;
}

const facts = new WeakMap<object, Facts>();

/** Registers `handle` as owned by one DAG under construction. */
export function own<H extends object>(
  handle: H,
  owner: object,
  { source = null, map = null }: { readonly source?: InputSource | null; readonly map?: string | null } = {},
): H {
  facts.set(handle, { owner, source, map });
  Object.defineProperty(handle, Symbol.toPrimitive, { value: hasNoValue });
  return Object.freeze(handle);
}

/** Called for a handle in `a >> b`, `a + 1` or a text, which would silently lose the edge or the value. */
function hasNoValue(this: {
  readonly dagId: string;
  readonly taskId?: string;
  readonly groupId?: string;
}): never {
  const name = this.taskId ?? this.groupId;
  throw new DagDefinitionError(
    "TW_BAD_HANDLE",
    `dag ${show(this.dagId)}: the handle of ${show(name)} has no value while the DAG is defined, so operators like >> and texts cannot use it; to order tasks, give the later one "after: ${name}"; for its output, "inputs: { ${name} }"`,
  );
}

/** The DAG under construction that owns a handle; undefined if the value is not a handle. */
export function ownerOf(handle: unknown): object | undefined {
  return factsOf(handle)?.owner;
}

/** The source of an output's value; null if the handle is not an output. */
export function sourceOf(handle: unknown): InputSource | null {
  return factsOf(handle)?.source ?? null;
}

/** The map inside which an output has its declared type; null: anywhere in its DAG. */
export function mapOf(handle: unknown): string | null {
  return factsOf(handle)?.map ?? null;
}

function factsOf(handle: unknown): Facts | undefined {
  return typeof handle === "object" && handle !== null ? facts.get(handle) : undefined;
}

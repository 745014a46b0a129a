/**
 * Handles: what `d.task`, `d.add` and `d.group` return, and what `inputs` and `after` take. A handle belongs to the
 * DAG that made it; that is kept outside the handle, so that it can be neither forged nor serialised by accident.
 */
import { DagDefinitionError, show } from "../check/errors.ts";
import type { InputSource, TriggerRule } from "../manifest.ts";
import type { SettledInput } from "../runtime/program.ts";

declare const VALUE: unique symbol;
declare const EACH: unique symbol;

/** The output of a task, before it exists: give it to another task as an input or as something to come after. */
export interface Output<T> {
  readonly kind: "output";
  readonly dagId: string;
  readonly taskId: string;
  readonly [VALUE]?: T;
}

/** The outputs of a mapped task, in the order of the items: a list, to whoever comes after it. */
export interface Mapped<T> extends Output<readonly T[]> {
  readonly [EACH]?: T;
}

/** A task group; to come after it means to come after its last tasks. `result` is what its build function returned. */
export interface Group<T = unknown> {
  readonly kind: "group";
  readonly dagId: string;
  readonly groupId: string;
  readonly result: T;
}

/** Any task's output, whatever its type. */
export type AnyOutput = Output<unknown>;

/** What `after` takes. */
export type Upstream = AnyOutput | Group;

/** What `inputs` takes. */
export type InputHandles = Readonly<Record<string, AnyOutput>>;

/** No inputs. */
export type NoInputs = Record<never, never>;

/**
 * How an upstream task ended, for every rule but `allSuccess`: look at `state` before reading `value`.
 * "none": it has not ended yet, which the rules `always` and `one...` allow.
 */
export type Settled<T> =
  | { readonly state: "success"; readonly value: T }
  | { readonly state: Exclude<SettledInput["state"], "success"> };

/**
 * What a handler receives: with the rule `allSuccess` the value of each input. Under every other rule an upstream
 * may have failed, been skipped or not even begun, so each input is {@link Settled}; of a mapped task, each of its list.
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

/** The handles that give an operator the inputs it declares. */
export type HandlesFor<In, Rule extends TriggerRule> = {
  readonly [K in keyof In]: Output<Rule extends "allSuccess" ? In[K] : SettledValue<In[K]>>;
};

type SettledValue<S> = S extends { readonly state: "success"; readonly value: infer T } ? T : never;

/** What is known of a handle besides what it says. */
interface Facts {
  readonly owner: object;
  /** Of an output: where its value comes from, and the map inside which it has the type it says. */
  readonly source: InputSource | null;
  readonly map: string | null;
}

const facts = new WeakMap<object, Facts>();

/** Makes `handle` the property of one DAG under construction. */
export function own<H extends object>(
  handle: H,
  owner: object,
  { source = null, map = null }: { readonly source?: InputSource | null; readonly map?: string | null } = {},
): H {
  facts.set(handle, { owner, source, map });
  Object.defineProperty(handle, Symbol.toPrimitive, { value: hasNoValue });
  return Object.freeze(handle);
}

/** Of a handle in `a >> b`, `a + 1` or a text: without this, the edge or the value would be missing, and no error say so. */
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

/** Whether a value is a handle, and of which DAG under construction. */
export function ownerOf(handle: unknown): object | undefined {
  return factsOf(handle)?.owner;
}

/** Where the value of an output comes from; null: it is none. */
export function sourceOf(handle: unknown): InputSource | null {
  return factsOf(handle)?.source ?? null;
}

/** The map inside which an output has the type it says; null: anywhere in its DAG. */
export function mapOf(handle: unknown): string | null {
  return factsOf(handle)?.map ?? null;
}

function factsOf(handle: unknown): Facts | undefined {
  return typeof handle === "object" && handle !== null ? facts.get(handle) : undefined;
}

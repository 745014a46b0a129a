/**
 * Conditions on signals, as a reducer: a condition is evaluated against every signal of the log, one by one and in order,
 * which changes its state or fires it. The state is small JSON, stored together with the effects of the signal, so that a
 * partly fulfilled condition survives the process.
 *
 * A leaf that a signal makes true stays true; a leaf with `equals` becomes false again with another value. When the whole
 * condition is true it fires, once, and all its leaves become false: no signal counts twice.
 */
import type { Json, SignalCondition } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";
import {
  isSameJson,
  type ListeningRun,
  matchesSignal,
  namesMatch,
  type SignalFacts,
  type SignalLeaf,
} from "./signal-condition-match.ts";

/** An input of a condition: a signal, or the success of a task of the same run. */
export type Fact =
  | ({ readonly kind: "signal" } & SignalFacts)
  | { readonly kind: "task"; readonly taskId: string; readonly version: number | null };

/** The last match of a leaf. */
export interface LeafState {
  readonly met: boolean;
  /** The key of the signal, or the id of the task. */
  readonly key: string;
  readonly version: number | null;
  /** Only where needed: see {@link compileCondition}. Left out if it is large. */
  readonly value?: Json;
}

/** The matches since the condition fired last. By leaf, in the order written; null: none. */
export interface ConditionState {
  readonly leaves: readonly (LeafState | null)[];
}

type TaskLeaf = Extract<SignalCondition, { kind: "task" }>;
type Node = { readonly leaf: number } | { readonly kind: "all" | "any"; readonly of: readonly Node[] };

/** A condition with numbered leaves. Immutable; shared by all runs. */
export interface CompiledCondition {
  readonly root: Node;
  readonly leaves: readonly (SignalLeaf | TaskLeaf)[];
  readonly keepValues: boolean;
}

export interface Advance {
  readonly state: ConditionState;
  readonly fired: boolean;
  /** When it fired: the matches of its true leaves, in the order written. */
  readonly by: readonly LeafState[];
}

/** The maximum length of values kept for display. */
const SHOWN_CHARACTERS = 200;

/**
 * Numbers the leaves. `keepValues`: the state keeps the values of all signals, at any size, for a schedule that passes them
 * to its run; otherwise only short values of leaves with `equals`, for display.
 */
export function compileCondition(
  condition: SignalCondition,
  { keepValues = false }: { readonly keepValues?: boolean } = {},
): CompiledCondition {
  const leaves: (SignalLeaf | TaskLeaf)[] = [];
  const compile = (each: SignalCondition): Node => {
    if (each.kind === "signal" || each.kind === "task") return { leaf: leaves.push(each) - 1 };
    if ((each.kind === "all" || each.kind === "any") && each.of.length > 0) {
      return { kind: each.kind, of: each.of.map(compile) };
    }
    throw new ModelError("CONDITION_INVALID", `a condition of kind "${each.kind}" needs at least one part`);
  };
  return { root: compile(condition), leaves, keepValues };
}

export function emptyState({ leaves }: CompiledCondition): ConditionState {
  return { leaves: leaves.map(() => null) };
}

/** The stored state if it fits the condition: after a change of the DAG, only matches of unchanged leaves are kept. */
export function loadState(condition: CompiledCondition, stored: Json | undefined): ConditionState {
  const leaves = (stored as { readonly leaves?: readonly (LeafState | null)[] } | null | undefined)?.leaves;
  if (!Array.isArray(leaves) || leaves.length !== condition.leaves.length) return emptyState(condition);
  const fits = (state: LeafState | null, index: number) => {
    const leaf = condition.leaves[index]!;
    if (state === null) return true;
    return leaf.kind === "task"
      ? leaf.taskId === state.key
      : namesMatch(leaf, { namespace: leaf.namespace, key: state.key });
  };
  return leaves.every(fits) ? { leaves } : emptyState(condition);
}

/** The state after one more input, and whether that input fired the condition. */
export function advance(
  condition: CompiledCondition,
  state: ConditionState,
  heard: Fact,
  run: ListeningRun,
): Advance {
  const next = addFact(condition, state, heard, run);
  if (next === state || !isTrue(condition, next)) return { state: next, fired: false, by: [] };
  const by = next.leaves.filter((leaf) => leaf?.met === true) as LeafState[];
  return { state: spent(condition, next), fired: true, by };
}

/** All leaves false again. The last value of an `equals` leaf is kept for display: it may stay the same for long. */
function spent(condition: CompiledCondition, { leaves }: ConditionState): ConditionState {
  return {
    leaves: leaves.map((heard, index) => {
      const leaf = condition.leaves[index]!;
      if (heard?.value === undefined || leaf.kind === "task" || leaf.equals === null) return null;
      return isShown(heard.value) ? { ...heard, met: false } : null;
    }),
  };
}

function isShown(value: Json): boolean {
  return JSON.stringify(value).length <= SHOWN_CHARACTERS;
}

/** The state after one more input, for a caller that evaluates it later; the same object if nothing matched. */
export function addFact(
  condition: CompiledCondition,
  state: ConditionState,
  heard: Fact,
  run: ListeningRun,
): ConditionState {
  let leaves: (LeafState | null)[] | null = null;
  condition.leaves.forEach((leaf, index) => {
    const next = leafAfter(leaf, heard, run, condition.keepValues);
    if (next === null) return;
    leaves ??= [...state.leaves];
    leaves[index] = next;
  });
  return leaves === null ? state : { leaves };
}

export function isTrue(condition: CompiledCondition, state: ConditionState): boolean {
  return isMet(condition.root, state.leaves);
}

/** null: the leaf does not match. */
function leafAfter(
  leaf: SignalLeaf | TaskLeaf,
  heard: Fact,
  run: ListeningRun,
  keepValues: boolean,
): LeafState | null {
  if (leaf.kind === "task") {
    if (heard.kind !== "task" || heard.taskId !== leaf.taskId) return null;
    return { met: true, key: heard.taskId, version: heard.version };
  }
  if (heard.kind !== "signal" || !matchesSignal(leaf, heard, run)) return null;
  const { key, version, value } = heard;
  const met = leaf.equals === null || isSameJson(leaf.equals.value, value);
  const isKept = keepValues || (leaf.equals !== null && isShown(value));
  return { met, key, version, ...(isKept && { value }) };
}

function isMet(node: Node, leaves: readonly (LeafState | null)[]): boolean {
  if ("leaf" in node) return leaves[node.leaf]?.met === true;
  const isTrue = (each: Node) => isMet(each, leaves);
  return node.kind === "all" ? node.of.every(isTrue) : node.of.some(isTrue);
}

/** A condition and its progress, for display. */
export interface ConditionReport {
  /** As written: `all(model.trained, model.checked where {"score":1})`. */
  readonly text: string;
  /** The parts still missing before it fires: `model.checked where {"score":1}`. */
  readonly missing: string;
  readonly leaves: readonly LeafReport[];
}

export interface LeafReport {
  readonly text: string;
  readonly met: boolean;
  /** The version of the last match; null: none, or a task. */
  readonly version: number | null;
  /** With `equals`: the latest value, unless it is large. */
  readonly latest: Json | undefined;
}

export function describeState(condition: CompiledCondition, state: ConditionState): ConditionReport {
  const { root, leaves } = condition;
  return {
    text: textOf(condition, root),
    missing: missing(condition, state, root) ?? "",
    leaves: leaves.map((leaf, index) => {
      const heard = state.leaves[index] ?? null;
      const isLevel = leaf.kind === "signal" && leaf.equals !== null;
      return {
        text: leafText(leaf),
        met: heard?.met === true,
        version: heard?.version ?? null,
        latest: isLevel ? heard?.value : undefined,
      };
    }),
  };
}

function textOf(condition: CompiledCondition, node: Node): string {
  if ("leaf" in node) return leafText(condition.leaves[node.leaf]!);
  return `${node.kind}(${node.of.map((each) => textOf(condition, each)).join(", ")})`;
}

function leafText(leaf: SignalLeaf | TaskLeaf): string {
  if (leaf.kind === "task") return `task ${leaf.taskId}`;
  const { namespace, key, where, equals, inRun } = leaf;
  return [
    namespace === "default" ? key : `${namespace}:${key}`,
    ...(where === null ? [] : [`where ${JSON.stringify(where)}`]),
    ...(equals === null ? [] : [`= ${JSON.stringify(equals.value)}`]),
    ...(inRun ? ["from this run"] : []),
  ].join(" ");
}

/** null: nothing is missing. */
function missing(condition: CompiledCondition, state: ConditionState, node: Node): string | null {
  if (isMet(node, state.leaves)) return null;
  if ("leaf" in node) {
    const latest = state.leaves[node.leaf]?.value;
    const leaf = condition.leaves[node.leaf]!;
    const text = leafText(leaf);
    if (latest === undefined) return text;
    // The value is the expected one, and the condition has already fired with it.
    const isCounted = leaf.kind === "signal" && leaf.equals !== null && isSameJson(leaf.equals.value, latest);
    return isCounted ? `${text} (already counted)` : `${text} (current value: ${JSON.stringify(latest)})`;
  }
  const parts = node.of.flatMap((each) => {
    const text = missing(condition, state, each);
    return text === null ? [] : [{ text, isWord: "leaf" in each }];
  });
  if (parts.length === 1) return parts[0]!.text;
  return parts
    .map(({ text, isWord }) => (isWord ? text : `(${text})`))
    .join(node.kind === "all" ? " and " : " or ");
}

/** Whether a signal matches a leaf of a condition: its name, its value, its sender. */
import type { Json, SignalCondition } from "@tradewind/sdk/manifest";
import { fitsPattern } from "@tradewind/sdk/signal-names";

export type SignalLeaf = Extract<SignalCondition, { kind: "signal" }>;

/** A run, by name. */
export interface RunName {
  readonly dagId: string;
  readonly runId: string;
}

/** A signal of the log. */
export interface SignalFacts {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
  readonly version: number;
  /** The run of the task that sent it; null: it was sent from outside. */
  readonly from: RunName | null;
}

/** The run that receives signals. */
export interface ListeningRun extends RunName {
  readonly conf: Json;
}

/** For a schedule, which has no run: its leaves do not need one. */
export const NO_RUN: ListeningRun = { dagId: "", runId: "", conf: null };

/** The maximum depth of a comparison: deeper values count as different. A value from outside must not exhaust the stack. */
const MAX_DEPTH = 1_000;

/** Whether a signal matches a leaf of a run; `equals` is evaluated separately. */
export function matchesSignal(leaf: SignalLeaf, signal: SignalFacts, run: ListeningRun): boolean {
  return (
    namesMatch(leaf, signal) &&
    (!leaf.inRun || isSameRun(signal.from, run)) &&
    (leaf.where === null || matches(leaf.where, signal.value, { conf: run.conf, depth: 0 }))
  );
}

/** The same for a single wait with resolved references into the conf: the arguments of `tradewind.signal`. */
export function fitsWait(
  wait: Pick<SignalLeaf, "namespace" | "key" | "where" | "equals"> & { readonly inRun: RunName | null },
  signal: SignalFacts,
): boolean {
  return (
    namesMatch(wait, signal) &&
    (wait.inRun === null || isSameRun(signal.from, wait.inRun)) &&
    (wait.where === null || matches(wait.where, signal.value, { conf: undefined, depth: 0 })) &&
    (wait.equals === null || isSameJson(wait.equals.value, signal.value))
  );
}

export function isSameJson(a: Json, b: Json, depth = 0): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b) || depth > MAX_DEPTH) return false;
  const [mine, theirs] = [a as Members, b as Members];
  const keys = Object.keys(mine);
  return (
    keys.length === Object.keys(theirs).length &&
    keys.every((key) => Object.hasOwn(theirs, key) && isSameJson(mine[key]!, theirs[key]!, depth + 1))
  );
}

export function hasWildcard({ namespace, key }: Pick<SignalLeaf, "namespace" | "key">): boolean {
  return namespace.includes("*") || key.includes("*");
}

export function namesMatch(
  pattern: Pick<SignalLeaf, "namespace" | "key">,
  name: Pick<SignalLeaf, "namespace" | "key">,
): boolean {
  return fitsPattern(pattern.namespace, name.namespace) && fitsPattern(pattern.key, name.key);
}

/** The value at a path like "order.items.0.id"; undefined if there is none. */
export function valueAt(json: Json, path: string): Json | undefined {
  let at: Json | undefined = json;
  for (const part of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Members)[part];
  }
  return at;
}

type Members = Readonly<Record<string, Json>>;

/** `conf` undefined: references are not resolved and count as values. */
interface Scope {
  readonly conf: Json | undefined;
  readonly depth: number;
}

/** An object matches one with at least its members, a list one of the same length, other values their equal. */
function matches(pattern: Json, value: Json, { conf, depth }: Scope): boolean {
  if (typeof pattern !== "object" || pattern === null) return pattern === value;
  if (depth > MAX_DEPTH) return false;
  const path = conf === undefined ? undefined : (pattern as Members)["$conf"];
  if (conf !== undefined && typeof path === "string") {
    const wanted = valueAt(conf, path);
    // Values from a conf are never read as references: they may come from anyone.
    return wanted !== undefined && matches(wanted, value, { conf: undefined, depth: depth + 1 });
  }
  if (typeof value !== "object" || value === null || Array.isArray(pattern) !== Array.isArray(value))
    return false;
  if (Array.isArray(pattern) && pattern.length !== (value as readonly Json[]).length) return false;
  const [wanted, given] = [pattern as Members, value as Members];
  return Object.keys(wanted).every(
    (key) => Object.hasOwn(given, key) && matches(wanted[key]!, given[key]!, { conf, depth: depth + 1 }),
  );
}

function isSameRun(a: RunName | null, b: RunName): boolean {
  return a !== null && a.dagId === b.dagId && a.runId === b.runId;
}

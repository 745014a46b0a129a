/** Whether a signal is one that a leaf listens to: its name, what its value contains, where it comes from. */
import type { Json, SignalCondition } from "@tradewind/sdk/manifest";

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
  /** The run of the task that sent it; null: it comes from outside. */
  readonly from: RunName | null;
}

/** The run that listens. */
export interface ListeningRun extends RunName {
  readonly conf: Json;
}

/** Where no run listens, as in a schedule: its leaves have no use for one. */
export const NO_RUN: ListeningRun = { dagId: "", runId: "", conf: null };

/** How deep two values are compared: deeper ones are different. A value from outside must not exhaust the stack. */
const MAX_DEPTH = 1_000;

/** Whether a leaf of a run hears a signal; `equals` is another question. */
export function hears(leaf: SignalLeaf, signal: SignalFacts, run: ListeningRun): boolean {
  return (
    namesMatch(leaf, signal) &&
    (!leaf.inRun || isSameRun(signal.from, run)) &&
    (leaf.where === null || matches(leaf.where, signal.value, { conf: run.conf, depth: 0 }))
  );
}

/** The same for a single wait, whose references into the conf are resolved: the arguments of `tradewind.signal`. */
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

/** What stands at a path like "order.items.0.id"; undefined when there is nothing. */
export function valueAt(json: Json, path: string): Json | undefined {
  let at: Json | undefined = json;
  for (const part of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Members)[part];
  }
  return at;
}

type Members = Readonly<Record<string, Json>>;

/** `conf` undefined: there are no references, and what looks like one is a value. */
interface Scope {
  readonly conf: Json | undefined;
  readonly depth: number;
}

/** An object matches one that has its members, and maybe more; a list one of the same length; the rest its equal. */
function matches(pattern: Json, value: Json, { conf, depth }: Scope): boolean {
  if (typeof pattern !== "object" || pattern === null) return pattern === value;
  if (depth > MAX_DEPTH) return false;
  const path = conf === undefined ? undefined : (pattern as Members)["$conf"];
  if (conf !== undefined && typeof path === "string") {
    const wanted = valueAt(conf, path);
    // What a conf says is never read as a reference: it may come from anybody.
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

/** "*" stands for any text, also none. In time linear to the name, whatever the pattern. */
function fitsPattern(pattern: string, name: string): boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === name;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  const end = name.length - last.length;
  if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}

/**
 * Finds the waits that a signal's value may match. Thousands of runs may wait for the same signal, each with its own
 * order number: the index finds them by that number instead of testing each wait.
 */
import type { SignalArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { SignalFacts } from "../../model/index.ts";

type Scalar = string | number | boolean | null;

/** One scalar that a value must contain to match. */
interface Mark {
  readonly path: readonly string[];
  readonly value: Scalar;
}

interface Shelf<Wait> {
  readonly path: readonly string[];
  readonly waits: Map<Scalar, Set<Wait>>;
}

export class WaitIndex<Wait extends { readonly args: SignalArgs }> {
  /** By the path of their marks. */
  readonly #shelves = new Map<string, Shelf<Wait>>();
  readonly #unmarked = new Set<Wait>();

  add(wait: Wait): void {
    const mark = markOf(wait.args);
    if (mark === null) {
      this.#unmarked.add(wait);
      return;
    }
    const name = JSON.stringify(mark.path);
    const shelf = this.#shelves.get(name) ?? { path: mark.path, waits: new Map() };
    this.#shelves.set(name, shelf);
    const waits = shelf.waits.get(mark.value);
    if (waits === undefined) shelf.waits.set(mark.value, new Set([wait]));
    else waits.add(wait);
  }

  delete(wait: Wait): void {
    const mark = markOf(wait.args);
    if (mark === null) {
      this.#unmarked.delete(wait);
      return;
    }
    const name = JSON.stringify(mark.path);
    const shelf = this.#shelves.get(name);
    const waits = shelf?.waits.get(mark.value);
    waits?.delete(wait);
    if (waits?.size === 0) shelf?.waits.delete(mark.value);
    if (shelf?.waits.size === 0) this.#shelves.delete(name);
  }

  /** All waits that the signal matches, and some that it does not. */
  candidates({ value }: SignalFacts): Wait[] {
    const found = [...this.#unmarked];
    for (const { path, waits } of this.#shelves.values()) {
      const given = scalarAt(value, path);
      if (given !== undefined) found.push(...(waits.get(given) ?? []));
    }
    return found;
  }
}

function markOf({ equals, where }: SignalArgs): Mark | null {
  if (where !== null) return firstScalar(where, []);
  return equals === null ? null : firstScalar(equals.value, []);
}

/** Lists are skipped: their elements have no names. */
function firstScalar(pattern: Json, path: readonly string[]): Mark | null {
  if (typeof pattern !== "object" || pattern === null) return { path, value: pattern };
  if (Array.isArray(pattern) || path.length > 20) return null;
  for (const [name, member] of Object.entries(pattern as Record<string, Json>)) {
    const mark = firstScalar(member, [...path, name]);
    if (mark !== null) return mark;
  }
  return null;
}

function scalarAt(value: Json, path: readonly string[]): Scalar | undefined {
  let at: Json | undefined = value;
  for (const name of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, Json>)[name];
  }
  return typeof at === "object" && at !== null ? undefined : at;
}

/** The source of a map: a task's output, a list, or several of them joined. */
import { DagDefinitionError, show } from "../check/errors.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { MapSource } from "../manifest.ts";
import { type Mapped, type Output, sourceOf } from "./handle.ts";

/**
 * Several lists joined to one by {@link zip} or {@link cross}.
 * @example const over: JoinedLists<[string, number]> = zip(["a", "b"], [1, 2]);
 */
export interface JoinedLists<T> {
  readonly kind: "zip" | "cross";
  readonly of: readonly Over[];
  readonly item?: T;
}

/**
 * The source of a map, for the option `over`.
 * @example const over: Over = cross(regions, ["small", "large"]);
 */
export type Over = Output<readonly unknown[]> | readonly unknown[] | JoinedLists<unknown>;

/**
 * The type of one item of a map's source.
 * @example const item: ItemOf<Output<string[]>> = "eu";
 */
export type ItemOf<O> =
  O extends Output<infer L>
    ? L extends readonly (infer T)[]
      ? T
      : never
    : O extends JoinedLists<infer T>
      ? T
      : O extends readonly (infer T)[]
        ? T
        : never;

type ItemsOf<L extends readonly Over[]> = { -readonly [K in keyof L]: ItemOf<L[K]> };

/**
 * The result of a mapped group as seen from outside: each output becomes a list.
 * @example const result: Gathered<Output<number>> = d.map("sizes", { over: ["a"] }, (text) => text.length);
 */
export type Gathered<R> =
  R extends Output<infer T>
    ? Mapped<T>
    : R extends readonly unknown[]
      ? { readonly [K in keyof R]: Gathered<R[K]> }
      : R extends object
        ? { readonly [K in keyof R]: Gathered<R[K]> }
        : R;

/**
 * Joins lists of the same length item by item: the first items, then the second items.
 * @example d.map("copy", { over: zip(sources, targets) }, ([from, to]) => copy(from, to));
 */
export function zip<const L extends readonly [Over, Over, ...Over[]]>(...lists: L): JoinedLists<ItemsOf<L>> {
  return Object.freeze({ kind: "zip", of: lists });
}

/**
 * Joins each item of one list with each item of the others; the last list varies fastest.
 * @example d.map("train", { over: cross(regions, ["small", "large"]) }, ([region, size]) => train(region, size));
 */
export function cross<const L extends readonly [Over, Over, ...Over[]]>(
  ...lists: L
): JoinedLists<ItemsOf<L>> {
  return Object.freeze({ kind: "cross", of: lists });
}

/** @param check Throws if the handle must not be used at this place of the DAG. */
export function mapSource(
  over: unknown,
  { check, where }: { readonly check: (handle: unknown) => void; readonly where: string },
): MapSource {
  if (Array.isArray(over)) return { kind: "list", items: literal(over, where) };
  const { kind, of } = (over ?? {}) as Partial<JoinedLists<unknown>>;
  if ((kind === "zip" || kind === "cross") && Array.isArray(of)) {
    if (of.length > 1) return { kind, of: of.map((each) => mapSource(each, { check, where })) };
  } else {
    check(over);
    const source = sourceOf(over);
    if (source && "item" in source) return { kind: "item", mapId: source.item };
    if (source) return { kind: "output", taskId: source.taskId };
  }
  throw new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where}: over must be the output of a task, a list, zip() or cross(), got ${show(over)}`,
  );
}

function literal(items: readonly unknown[], where: string): Extract<MapSource, { kind: "list" }>["items"] {
  const refuse = (message: string) => new DagDefinitionError("TW_BAD_OPTION", `${where}: ${message}`);
  const copy = jsonCopy(items, {
    root: "over",
    notJson: refuse,
    tooLarge: (message) => refuse(`${message}; let a task return the list`),
  });
  return copy as Extract<MapSource, { kind: "list" }>["items"];
}

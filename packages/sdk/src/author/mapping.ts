/** What a map runs over: a task's output, a list, or several of them joined. */
import { DagDefinitionError, show } from "../check/errors.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { MapSource } from "../manifest.ts";
import { type Mapped, type Output, sourceOf } from "./handle.ts";

/** Lists that are joined to one: see {@link zip} and {@link cross}. */
export interface JoinedLists<T> {
  readonly kind: "zip" | "cross";
  readonly of: readonly Over[];
  readonly item?: T;
}

/** What `over` takes. */
export type Over = Output<readonly unknown[]> | readonly unknown[] | JoinedLists<unknown>;

/** What one instance of a map gets. */
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

/** What the build function of a mapped group returned, seen from outside: each output is the list of all of them. */
export type Gathered<R> =
  R extends Output<infer T>
    ? Mapped<T>
    : R extends readonly unknown[]
      ? { readonly [K in keyof R]: Gathered<R[K]> }
      : R extends object
        ? { readonly [K in keyof R]: Gathered<R[K]> }
        : R;

/**
 * Runs over several lists at once, place by place: the first item of each, then the second. They must be of the same
 * length.
 *
 * @example
 * ```ts
 * d.map("copy", { over: zip(sources, targets) }, ([from, to]) => copy(from, to));
 * ```
 */
export function zip<const L extends readonly [Over, Over, ...Over[]]>(...lists: L): JoinedLists<ItemsOf<L>> {
  return Object.freeze({ kind: "zip", of: lists });
}

/**
 * Runs over each item of one list with each item of the others; the last list moves fastest.
 *
 * @example
 * ```ts
 * d.map("train", { over: cross(regions, ["small", "large"]) }, ([region, size]) => train(region, size));
 * ```
 */
export function cross<const L extends readonly [Over, Over, ...Over[]]>(
  ...lists: L
): JoinedLists<ItemsOf<L>> {
  return Object.freeze({ kind: "cross", of: lists });
}

/** @param check That a handle may be used at this place of the DAG. */
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

/**
 * Outputs that are too large for the database, which stores a reference to each. Here a `LargeValue` takes the place of the
 * value. It is a class, not a JSON shape: no value that a task returns can be mistaken for one.
 */
import type { Json } from "@tradewind/sdk/manifest";

export interface OutputReference {
  /** The id of its row: every stored object has one. */
  readonly id: number;
  /** The store of the object, as in the setting: `file:`, `file:/folder`, `s3://bucket/prefix`. */
  readonly store: string;
  readonly key: string;
  /** The size of its JSON in UTF-8. */
  readonly bytes: number;
  readonly sha256: string;
  /** The length if it is a list; null: it is not. */
  readonly items: number | null;
  /** The id of its run, for display; missing or null: unknown. */
  readonly run?: string | null;
}

/** A large output, an item of it, or a nested item. */
export class LargeValue {
  readonly reference: OutputReference;
  /** The item indexes from the output inwards; empty for the output itself. */
  readonly path: readonly number[];

  constructor(reference: OutputReference, path: readonly number[] = []) {
    this.reference = reference;
    this.path = path;
  }

  item(index: number): LargeValue {
    return new LargeValue(this.reference, [...this.path, index]);
  }

  /** A stable name: equal for the same value. */
  get name(): string {
    return [this.reference.id, ...this.path].join("/");
  }
}

/** A value, a large value, or a list with some of these in it. */
export type Known = Json | LargeValue | readonly Known[];

/** The place of a large value in another value. */
export interface LargePlace {
  readonly at: readonly (string | number)[];
  readonly value: LargeValue;
}

/**
 * The value with null in place of large values; records where they belong. Only lists can contain large values: the engine
 * creates such lists from gathered outputs and joined items.
 */
export function apart(value: Known, at: LargePlace["at"], places: LargePlace[]): Json {
  if (value instanceof LargeValue) {
    places.push({ at, value });
    return null;
  }
  if (!Array.isArray(value)) return value as Json;
  const before = places.length;
  const items = value.map((item: Known, index) => apart(item, [...at, index], places));
  return places.length === before ? (value as Json) : items;
}

/** The opposite of `apart`: puts large values back where they belong. */
export function rejoin(value: Json, places: readonly LargePlace[]): Known {
  let whole: Known = value;
  for (const { at, value: large } of places) whole = withAt(whole, at, large);
  return whole;
}

function withAt(value: Known, [first, ...rest]: LargePlace["at"], large: LargeValue): Known {
  if (typeof first !== "number" || !Array.isArray(value)) return large;
  return value.map((item: Known, index) => (index === first ? withAt(item, rest, large) : item));
}

/**
 * Outputs that are too large for the database. It holds a reference to each; here a `LargeValue` stands wherever the
 * value would. It is a class, not a shape of JSON: nothing that a task returns can be taken for one.
 */
import type { Json } from "@tradewind/sdk/manifest";

export interface OutputReference {
  /** Its row: every object that may exist has one. */
  readonly id: number;
  /** Which store it was put into, as the setting says it: `file:`, `file:/folder`, `s3://bucket/prefix`. */
  readonly store: string;
  readonly key: string;
  /** Of its JSON, as UTF-8. */
  readonly bytes: number;
  readonly sha256: string;
  /** Of a list, how many items it has; null: it is none. */
  readonly items: number | null;
  /** The id of its run, for people; left out or null: it is not known here. */
  readonly run?: string | null;
}

/** A large output, or an item of it, or an item of that item. */
export class LargeValue {
  readonly reference: OutputReference;
  /** Which item of which: empty for the output itself. */
  readonly path: readonly number[];

  constructor(reference: OutputReference, path: readonly number[] = []) {
    this.reference = reference;
    this.path = path;
  }

  item(index: number): LargeValue {
    return new LargeValue(this.reference, [...this.path, index]);
  }

  /** The same for the same value. */
  get name(): string {
    return [this.reference.id, ...this.path].join("/");
  }
}

/** A value, or what stands for it, or a list that has some of these in it. */
export type Known = Json | LargeValue | readonly Known[];

/** Where in a value a large one belongs. */
export interface LargePlace {
  readonly at: readonly (string | number)[];
  readonly value: LargeValue;
}

/**
 * The value with null in place of what is large; notes what belongs there. Only lists can hold any: the engine makes
 * them, of outputs that it gathers and of items that it joins.
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

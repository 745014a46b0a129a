/**
 * Labels of map items. An author writes a function of the item, which is called once, when the file is loaded, with a
 * recorder that notes the fields it reads. The manifest contains data only: words and paths of fields. So the scheduler
 * can label 100,000 instances when it creates them, without user code.
 */
import { DagDefinitionError, show } from "../check/errors.ts";
import type { MapLabel } from "../manifest.ts";
import { decidingPart } from "./label-text.ts";

declare const FIELD: unique symbol;

/**
 * A placeholder for a field of an item, which a label can only join with text.
 * @example const label = (file: { name: LabelField }) => `load ${file.name}`;
 */
export interface LabelField {
  readonly [FIELD]: true;
}

/**
 * An item as its label function sees it: each field is a {@link LabelField}.
 * @example const label = (item: LabelItem<{ city: { name: string } }>) => item.city.name;
 */
export type LabelItem<T> = LabelField & Fields<NonNullable<T>>;

type Fields<T> = T extends object ? { readonly [K in keyof T]: LabelItem<T[K]> } : unknown;

/** Private-use characters: they mark the n-th field that was read. */
const MARK = /\uf8fe(\d+)\uf8ff/;

export function mapLabel(given: unknown, where: string): MapLabel | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== "function") throw refused(where, `must be a function of the item, got ${show(given)}`);
  const read = new Reading();
  const label: unknown = read.label(given as (item: unknown) => unknown, where);
  const deciding = decidingPart(Function.prototype.toString.call(given));
  if (deciding !== null)
    throw refused(
      where,
      `has ${show(deciding)} in it: it is called once, before the items exist, and can only join fields of the item with text`,
    );
  if (typeof label !== "string")
    throw refused(where, `must return text, or a field of the item, got ${show(label)}`);
  // Every second part is the number of a field.
  const split = label.split(MARK);
  if (split.length !== 2 * read.paths.length + 1)
    throw refused(where, "uses a field for something else than a part of its text");
  const parts = split.map((part, place) => (place % 2 === 0 ? part : read.paths[Number(part)]!));
  const kept = parts.filter((part) => part.length > 0 || Array.isArray(part));
  if (!kept.some(Array.isArray))
    throw refused(where, "reads no field of the item, so all items would have the same label");
  return kept;
}

class Reading {
  /** The path from the item to each field that became a part of the label. */
  readonly paths: string[][] = [];
  readonly #fields = new WeakSet<object>();

  label(given: (item: unknown) => unknown, where: string): unknown {
    try {
      const label = given(this.#field([]));
      return typeof label === "object" && label !== null && this.#fields.has(label) ? `${label}` : label;
    } catch (error) {
      const problem = error instanceof Error ? error.message : show(error);
      throw refused(where, `can only join fields of the item with text: ${problem}`);
    }
  }

  #field(path: readonly string[]): object {
    const field = new Proxy(Object.freeze({}), {
      get: (_, key) => {
        if (key === Symbol.toPrimitive) return (hint: string) => this.#mark(path, hint);
        if (key === Symbol.iterator) return () => this.#members(path);
        if (key === "toString") return () => this.#mark(path, "string");
        return typeof key === "symbol" ? undefined : this.#field([...path, key]);
      },
    });
    this.#fields.add(field);
    return field;
  }

  #mark(path: readonly string[], hint: string): string {
    if (hint === "number") throw new TypeError("a field is not a number yet");
    return `\uf8fe${this.paths.push([...path]) - 1}\uf8ff`;
  }

  /** Yields any number of members: the length of the list is not known yet. */
  *#members(path: readonly string[]): Iterator<object> {
    for (let index = 0; index < 100; index++) yield this.#field([...path, String(index)]);
    throw new TypeError("a label takes the members of a list one by one");
  }
}

function refused(where: string, problem: string): DagDefinitionError {
  return new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where}: label ${problem}; write it like (item) => item.name or (item) => \`\${item.name} of \${item.day}\`; where that is not enough, let the task that returns the list add a field`,
  );
}

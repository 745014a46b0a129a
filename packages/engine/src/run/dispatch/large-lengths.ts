/**
 * The lengths of lists inside large lists, which maps over them need. Cached, because each is used more than once and the
 * objects never change. Bounded; the oldest entries are dropped first.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LargeValue } from "../../model/index.ts";

/** Reads large lists. Each method throws if the object is missing, damaged, or cannot be read. */
export interface LargeLists {
  /** null: not a list. */
  length(value: LargeValue): Promise<number | null>;
  /** Consecutive items; null: their text is too large for memory. */
  items(list: LargeValue, first: number, count: number): Promise<readonly Json[] | null>;
}

const MOST = 100_000;

export class LargeLengths {
  readonly #lengths = new Map<string, number | null>();
  readonly lists: LargeLists;

  constructor(lists: LargeLists = { length: unread, items: unread }) {
    this.lists = lists;
  }

  /** null: not a list; undefined: not read yet. */
  get(value: LargeValue): number | null | undefined {
    return this.#lengths.get(value.name);
  }

  /** @throws if the object is missing, damaged, or cannot be read. */
  async measure(values: readonly LargeValue[]): Promise<void> {
    for (const value of values) {
      if (this.#lengths.has(value.name)) continue;
      this.#lengths.set(value.name, await this.lists.length(value));
      for (const oldest of this.#lengths.keys()) {
        if (this.#lengths.size <= MOST) break;
        this.#lengths.delete(oldest);
      }
    }
  }
}

function unread(value: LargeValue): Promise<never> {
  return Promise.reject(new Error(`no store to read ${value.reference.key}`));
}

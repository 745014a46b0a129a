/**
 * How many items the items of large lists have: what a map over them has to know, and nothing else of them. Remembered,
 * for each is asked for more than once; a fact about an object that never changes. Bounded, oldest out first.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LargeValue } from "../../model/index.ts";

/** What can be found out about large lists. Each throws when the object is missing, damaged, or cannot be read. */
export interface LargeLists {
  /** null: it is no list. */
  length(value: LargeValue): Promise<number | null>;
  /** Items that follow one another; null: they are too much text to be held in memory. */
  items(list: LargeValue, first: number, count: number): Promise<readonly Json[] | null>;
}

const MOST = 100_000;

export class LargeLengths {
  readonly #lengths = new Map<string, number | null>();
  readonly lists: LargeLists;

  constructor(lists: LargeLists = { length: unread, items: unread }) {
    this.lists = lists;
  }

  /** null: it is no list; undefined: not known yet. */
  get(value: LargeValue): number | null | undefined {
    return this.#lengths.get(value.name);
  }

  /** @throws when the object is missing, damaged, or cannot be read. */
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
  return Promise.reject(new Error(`nobody here reads ${value.reference.key}`));
}

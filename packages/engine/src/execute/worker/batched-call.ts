/**
 * Collects items while a request is under way, and sends them together in the next one: an idle worker sends at once, a busy
 * one makes few requests. Transient failures are repeated until `isWanted` says otherwise.
 */
import { WakeableSleep } from "../../service/wakeable-sleep.ts";
import { ExecutionError } from "./execution-client.ts";
import { type Repeats, repeated } from "./repeated-call.ts";

const MOST = 500;
/** The characters of one request, unless a single item has more. */
const MOST_CHARACTERS = 16 * 1024 * 1024;
/** So many characters do not wait for the gap between two requests. */
const MUCH = 64 * 1024;

export interface BatchedCallOptions<Item, Result> extends Repeats {
  /** Results in the order of the items. May be called again with the same items. */
  readonly send: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** The length of an item in a request. Left out: it does not matter. */
  readonly lengthOf?: (item: Item) => number;
  /** Time between two requests, unless a caller hurries, or much waits. Left out: one follows the other at once. */
  readonly gapMs?: number;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly length: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class BatchedCall<Item, Result> {
  readonly #options: BatchedCallOptions<Item, Result>;
  readonly #sleep = new WakeableSleep();
  #waiting: Waiting<Item, Result>[] = [];
  /** Of the waiting items. */
  #length = 0;
  /** When the last request began, by performance.now(). */
  #sentAt = Number.NEGATIVE_INFINITY;
  #hurries = 0;
  #work: Promise<void> | null = null;

  constructor(options: BatchedCallOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    const length = this.#options.lengthOf?.(item) ?? 0;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, length, resolve, reject });
      this.#length += length;
      if (this.#length >= MUCH) this.#sleep.wake();
      this.#work ??= this.#drain();
    });
  }

  /** Until `work` has settled, requests follow each other at once. */
  async hurried(work: Promise<void>): Promise<void> {
    this.#hurries++;
    this.#sleep.wake();
    try {
      await work;
    } finally {
      this.#hurries--;
    }
  }

  /** Resolves when no item waits. */
  async idle(): Promise<void> {
    await this.#work;
  }

  async #drain(): Promise<void> {
    // All items of this turn of the event loop go together.
    await null;
    while (this.#waiting.length > 0) {
      await this.#gap();
      this.#sentAt = performance.now();
      await this.#sendOne(this.#next());
    }
    this.#work = null;
  }

  async #gap(): Promise<void> {
    const { gapMs = 0 } = this.#options;
    for (;;) {
      const leftMs = this.#sentAt + gapMs - performance.now();
      if (leftMs <= 0 || this.#hurries > 0 || this.#length >= MUCH) return;
      await this.#sleep.sleep(leftMs);
    }
  }

  /** The waiting items that go together. */
  #next(): Waiting<Item, Result>[] {
    let [count, length] = [0, 0];
    for (const each of this.#waiting) {
      if (count === MOST || (count > 0 && length + each.length > MOST_CHARACTERS)) break;
      count++;
      length += each.length;
    }
    this.#length -= length;
    return this.#waiting.splice(0, count);
  }

  async #sendOne(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await repeated(() => this.#options.send(batch.map(({ item }) => item)), this.#options);
      for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
    } catch (error) {
      if (error instanceof ExecutionError && error.isOfContent && batch.length > 1) {
        // One item is rejected, or all together are too large: the others must not suffer from it.
        const half = batch.length >> 1;
        await this.#sendOne(batch.slice(0, half));
        return this.#sendOne(batch.slice(half));
      }
      for (const { reject } of batch) reject(error);
    }
  }
}

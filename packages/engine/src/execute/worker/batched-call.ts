/**
 * Collects items while a request is under way, and sends them together in the next one: an idle worker sends at once, a busy
 * one makes few requests. Transient failures are repeated until `isWanted` says otherwise.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ExecutionError } from "./execution-client.ts";

const MOST = 500;
/** The characters of one request, unless a single item has more. */
const MOST_CHARACTERS = 16 * 1024 * 1024;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

export interface BatchedCallOptions<Item, Result> {
  /** Results in the order of the items. May be called again with the same items. */
  readonly send: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** False: waiting items are rejected instead of repeated. */
  readonly isWanted: () => boolean;
  /** The length of an item in a request. Left out: it does not matter. */
  readonly lengthOf?: (item: Item) => number;
  /** A transient failure, which is followed by another try. */
  readonly onRetry: (error: ExecutionError) => void;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export class BatchedCall<Item, Result> {
  readonly #options: BatchedCallOptions<Item, Result>;
  #waiting: Waiting<Item, Result>[] = [];
  #work: Promise<void> | null = null;

  constructor(options: BatchedCallOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#work ??= this.#drain();
    });
  }

  /** Resolves when no item waits. */
  async idle(): Promise<void> {
    await this.#work;
  }

  async #drain(): Promise<void> {
    // All items of this turn of the event loop go together.
    await null;
    while (this.#waiting.length > 0) await this.#sendOne(this.#waiting.splice(0, this.#fitting()));
    this.#work = null;
  }

  /** How many of the waiting items go together. */
  #fitting(): number {
    const { lengthOf = () => 0 } = this.#options;
    const most = Math.min(MOST, this.#waiting.length);
    let characters = 0;
    for (let count = 0; count < most; count++) {
      characters += lengthOf(this.#waiting[count]?.item as Item);
      if (characters > MOST_CHARACTERS) return Math.max(1, count);
    }
    return most;
  }

  async #sendOne(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        const results = await this.#options.send(batch.map(({ item }) => item));
        for (const [at, { resolve }] of batch.entries()) resolve(results[at] as Result);
        return;
      } catch (error) {
        const isTransient = error instanceof ExecutionError && error.isTransient;
        if (error instanceof ExecutionError && error.isOfContent && batch.length > 1) {
          // One item is rejected, or all together are too large: the others must not suffer from it.
          const half = batch.length >> 1;
          await this.#sendOne(batch.slice(0, half));
          return this.#sendOne(batch.slice(half));
        }
        if (!isTransient || !this.#options.isWanted()) {
          for (const { reject } of batch) reject(error);
          return;
        }
        this.#options.onRetry(error);
        await sleep(waitMs);
      }
    }
  }
}

/** Writes items to the database in the order of their arrival: one batch at a time, each with all that waits by then. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { CommitUnknownError, isContended, isTransient } from "../../store/database/database.ts";

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;
const MOST = 1_000;

export interface WriteQueueOptions<T> {
  /** May be called again with the same items. */
  readonly write: (batch: readonly T[]) => Promise<void>;
  /** The item cannot be written. `isTransient`: not now, and the queue is closed. */
  readonly failed: (item: T, error: unknown, isTransient: boolean) => void;
  readonly logger: Logger;
  /** For the log, e.g. "store assignments". */
  readonly what: string;
}

export class WriteQueue<T> {
  readonly #options: WriteQueueOptions<T>;
  #waiting: T[] = [];
  #work: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: WriteQueueOptions<T>) {
    this.#options = options;
  }

  add(item: T): void {
    this.#waiting.push(item);
    this.#work ??= this.#drain();
  }

  /** Resolves when everything is written, or when a write fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#work;
  }

  async #drain(): Promise<void> {
    // All items of this turn of the event loop go together.
    await null;
    while (this.#waiting.length > 0) await this.#writeOne(this.#waiting.splice(0, MOST));
    this.#work = null;
  }

  async #writeOne(batch: readonly T[]): Promise<void> {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        return await this.#options.write(batch);
      } catch (error) {
        const isRepeatable = isTransient(error) || isContended(error) || error instanceof CommitUnknownError;
        const { failed, logger, what } = this.#options;
        const facts = { items: batch.length, error: messageOf(error) };
        if (!isRepeatable && batch.length > 1) {
          // The database rejects a batch with one invalid item as a whole.
          for (const item of batch) await this.#writeOne([item]);
          return;
        }
        if (!isRepeatable || this.#isClosed) {
          logger.error(`cannot ${what}`, facts);
          for (const item of batch) failed(item, error, isRepeatable);
          return;
        }
        logger.warn(`cannot ${what}, retrying`, facts);
        await sleep(waitMs);
      }
    }
  }
}

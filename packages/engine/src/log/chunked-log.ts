/**
 * The writing side of a log that is sent in chunks of whole lines: to a bucket, or to an API server. A chunk is sent when its
 * first line is old enough, when it is large, or when the log is closed; one at a time.
 *
 * A store that does not answer never affects the attempt. Chunks are retried in the background, also after the log was
 * closed. Meanwhile a limited number of lines is kept; the log reports how many were lost. If the answer to a chunk is
 * lost, the chunk is sent again: it names its offset. If the process dies, the lines that it has not sent are lost.
 */
import { EngineError } from "../service/errors.ts";
import { WakeableSleep } from "../service/wakeable-sleep.ts";
import { LOG_CHUNK_REJECTED } from "./log-store.ts";
import type { LogListener, LogSink } from "./log-writer.ts";
import type { LogLine } from "./task-log.ts";

/** The store as the writer of one log uses it. Each call settles: a request without an answer needs a timeout. */
export interface ChunkStore {
  /** As `LogStore.begin`. */
  begin(): Promise<number>;
  /** As `LogStore.append`. */
  append(offset: number, bytes: Buffer): Promise<unknown>;
}

const CHUNK_LENGTH = 256 * 1024;
const GATHER_MS = 1_000;
/** The task is slowed down beyond this, or loses lines while the store does not answer. */
const HIGH_WATER = 1024 * 1024;
const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 15_000;
/** How long a closed log is retried. */
const LINGER_MS = 60_000;

export class ChunkedLog implements LogSink {
  readonly #store: ChunkStore;
  readonly #listener: LogListener;
  readonly #gatherMs: number;
  readonly #sleep = new WakeableSleep();
  readonly #done = Promise.withResolvers<void>();
  #waiting: string[] = [];
  /** Characters, with those of the chunk that is being sent. */
  #length = 0;
  /** Lines that were dropped while the store did not answer. */
  #lost = 0;
  /** Where the next chunk begins. */
  #offset: Promise<number> | null = null;
  #work: Promise<void> | null = null;
  #pressure = false;
  /** Resolved while the store does not answer. */
  #failure = Promise.withResolvers<void>();
  #state: "ok" | "failing" | "rejected" = "ok";
  #hasReported = false;
  /** By performance.now(), once the log is closed. */
  #giveUpAt: number | null = null;

  /** @param gatherMs How old the first line of a chunk becomes. */
  constructor(store: ChunkStore, listener: LogListener, gatherMs = GATHER_MS) {
    this.#store = store;
    this.#listener = listener;
    this.#gatherMs = gatherMs;
  }

  /** Resolves when the log is closed and nothing more will be sent. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  append(line: string): void {
    if (this.#state === "rejected") return;
    if (this.#state === "failing" && this.#length > HIGH_WATER) {
      this.#lost++;
      return;
    }
    this.#waiting.push(line);
    this.#length += line.length;
    this.#updatePressure();
    if (this.#length >= CHUNK_LENGTH && this.#state === "ok") this.#sleep.wake();
    this.#work ??= this.#send();
  }

  /** Resolves when everything appended so far is stored, or when the store does not answer: then it is retried. */
  async close(): Promise<void> {
    this.#giveUpAt ??= performance.now() + LINGER_MS;
    this.#sleep.wake();
    if (this.#work === null) this.#done.resolve();
    await Promise.race([this.#work, this.#failure.promise]);
  }

  /** Ends the retries. */
  abandon(): void {
    this.#giveUpAt = 0;
    this.#sleep.wake();
  }

  async #send(): Promise<void> {
    // While the first lines gather. An error is reported with the first chunk.
    this.#begin().catch(() => {});
    while (this.#waiting.length > 0) {
      if (this.#giveUpAt === null && this.#length < CHUNK_LENGTH) await this.#sleep.sleep(this.#gatherMs);
      const chunk = this.#nextChunk();
      if (!(await this.#deliver(Buffer.from(chunk)))) {
        this.#waiting = [];
        this.#length = 0;
        break;
      }
      this.#length -= chunk.length;
      this.#updatePressure();
      if (this.#lost > 0) this.#reportLost();
    }
    this.#work = null;
    if (this.#giveUpAt !== null) this.#done.resolve();
  }

  /** Whole lines, at least one. */
  #nextChunk(): string {
    let length = 0;
    let count = 0;
    while (count < this.#waiting.length && length < CHUNK_LENGTH) length += this.#waiting[count++]!.length;
    return this.#waiting.splice(0, count).join("");
  }

  /** False: it will never be stored. */
  async #deliver(chunk: Buffer): Promise<boolean> {
    for (let pauseMs = FIRST_RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_RETRY_MS)) {
      try {
        const offset = await this.#begin();
        await this.#store.append(offset, chunk);
        this.#offset = Promise.resolve(offset + chunk.length);
        if (this.#state === "failing") this.#failure = Promise.withResolvers();
        this.#state = "ok";
        return true;
      } catch (error) {
        this.#fail(error);
      }
      if (this.#state === "rejected" || performance.now() >= (this.#giveUpAt ?? Number.POSITIVE_INFINITY))
        return false;
      await this.#sleep.sleep(pauseMs);
    }
  }

  #begin(): Promise<number> {
    if (this.#offset === null) {
      const offset = this.#store.begin();
      this.#offset = offset;
      offset.catch(() => {
        this.#offset = null;
      });
    }
    return this.#offset;
  }

  #fail(error: unknown): void {
    const isRejected = error instanceof EngineError && error.code === LOG_CHUNK_REJECTED;
    this.#state = isRejected ? "rejected" : "failing";
    this.#failure.resolve();
    this.#updatePressure();
    if (!this.#hasReported) this.#listener.onError(error);
    this.#hasReported = true;
  }

  #updatePressure(): void {
    const high = this.#state === "ok" && this.#length > HIGH_WATER;
    if (high === this.#pressure) return;
    this.#pressure = high;
    this.#listener.onPressure(high);
  }

  #reportLost(): void {
    const message = `${this.#lost} lines were lost because the log store did not answer.`;
    const line: LogLine = { t: new Date().toISOString(), level: "warn", source: "engine", message };
    this.#lost = 0;
    this.append(`${JSON.stringify(line)}\n`);
  }
}

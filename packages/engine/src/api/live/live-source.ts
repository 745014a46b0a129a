/**
 * A source of messages, and its loop: it reads when it was called, at most every `gapMs`, and only while a topic of it is
 * watched. However many streams there are, each source has one loop per process.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Topic as WakeUp } from "../../job/wake-up.ts";
import type { Signal } from "../../signal/signal.ts";
import type { Database } from "../../store/database/database.ts";
import type { LiveMessage } from "./live-messages.ts";
import type { WatchedTopics } from "./watched-topics.ts";

export interface Reading {
  readonly messages: readonly LiveMessage[];
  /** There is more to read now. */
  readonly isMore?: boolean;
  /** There was too much to keep: streams have to read their data again. */
  readonly isLost?: boolean;
}

/** Its methods `on…` return whether it has something to read. */
export interface LiveSource {
  readonly gapMs: number;
  /** It also reads at this interval: wake-ups may get lost, and some changes have none. */
  readonly sweepMs?: number;
  isWanted(watched: WatchedTopics): boolean;
  /** Namespaces of signals of the engine that it receives, besides "run" and "action". */
  namespaces?(watched: WatchedTopics): readonly string[];
  onSignal?(signal: Signal, watched: WatchedTopics): boolean;
  onWakeUp?(topic: WakeUp): boolean;
  /** Topics were added. */
  onTopics?(watched: WatchedTopics): boolean;
  onMessages?(messages: readonly LiveMessage[]): boolean;
  /** The first call after `reset` notes the present state, of which there is no message. */
  read(database: Database, watched: WatchedTopics): Promise<Reading>;
  reset(): void;
}

interface LoopParts {
  readonly source: LiveSource;
  readonly database: Database;
  readonly watched: WatchedTopics;
  readonly onReading: (reading: Reading) => void;
  readonly onFailure: (error: unknown) => void;
}

/** After a read that took longer, the gap is longer, too: but not much, because a busy machine makes every read slow. */
const FAST_MS = 50;
const MOST_GAPS = 2;
const AWAY_MS = 1_000;

export class SourceLoop {
  readonly source: LiveSource;
  readonly #parts: LoopParts;
  #isWanted = false;
  #isCalled = false;
  #isRunning = false;
  #stop = new AbortController();
  #sweep: NodeJS.Timeout | undefined;
  /** Settled by the first read. */
  #first = Promise.withResolvers<void>();

  constructor(parts: LoopParts) {
    this.source = parts.source;
    this.#parts = parts;
  }

  /** Starts or stops it if its topics are watched, or no longer. */
  want(isWanted: boolean): void {
    if (isWanted === this.#isWanted) return;
    this.#isWanted = isWanted;
    clearInterval(this.#sweep);
    this.#stop.abort();
    if (!isWanted) return;
    this.#stop = new AbortController();
    this.#first = Promise.withResolvers();
    // Its rejection is for those who wait for it.
    this.#first.promise.catch(() => {});
    this.source.reset();
    const { sweepMs } = this.source;
    if (sweepMs !== undefined) this.#sweep = setInterval(() => this.call(), sweepMs).unref();
    this.call();
  }

  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Resolves when it has noted the state of which later changes are messages. */
  ready(): Promise<void> {
    return this.#first.promise;
  }

  call(): void {
    this.#isCalled = true;
    if (this.#isWanted && !this.#isRunning) void this.#run(this.#stop.signal);
  }

  async #run(stop: AbortSignal): Promise<void> {
    this.#isRunning = true;
    while (this.#isCalled && !stop.aborted) {
      this.#isCalled = false;
      const pause = await this.#read(stop);
      await sleep(pause, undefined, { signal: stop, ref: false }).catch(() => {});
    }
    this.#isRunning = false;
    // Wanted again meanwhile.
    if (this.#isWanted && stop.aborted) this.call();
  }

  async #read(stop: AbortSignal): Promise<number> {
    const { database, onFailure, onReading, source, watched } = this.#parts;
    const first = this.#first;
    const began = performance.now();
    try {
      const reading = await source.read(database, watched);
      if (stop.aborted) return 0;
      if (reading.isMore) this.#isCalled = true;
      onReading(reading);
      first.resolve();
      return Math.min(Math.max(1, (performance.now() - began) / FAST_MS), MOST_GAPS) * source.gapMs;
    } catch (error) {
      first.reject(error);
      this.#first = Promise.withResolvers();
      this.#first.promise.catch(() => {});
      this.#isCalled = true;
      onFailure(error);
      return AWAY_MS;
    }
  }
}

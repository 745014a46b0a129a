/**
 * One reader of the log: from its position on, in order, without a gap. It reads signals from before it joined the tail on
 * its own; from there on the tail delivers them. A slow reader leaves the tail: it drops its buffer and reads on its own
 * again, so that it costs the others nothing.
 */
import { WakeableSleep } from "../service/wakeable-sleep.ts";
import type { Database } from "../store/database/database.ts";
import type { LogPosition } from "../store/signal/signals-position.ts";
import { type LogFilter, readMatching } from "../store/signal/signals-read.ts";
import { type Follower, isAfter, type LogTail } from "./log-tail.ts";
import { logFilter, readPosition, type Signal, type SignalFilter, showPosition, signalOf } from "./signal.ts";
import type { NextOptions, SignalBatch, SignalPlace, Subscription } from "./signal-service.ts";

const MAX_BUFFERED = 20_000;

export class LogSubscription implements Subscription, Follower {
  readonly filter: SignalFilter;
  readonly #database: Database;
  readonly #tail: LogTail;
  readonly #query: LogFilter;
  readonly #sleep = new WakeableSleep();
  #position: LogPosition;
  /** From here on the tail delivers signals; null: not yet, or no longer. */
  #joinedAt: LogPosition | null = null;
  #buffer: Signal[] = [];
  #isFollowing = false;
  #isClosed = false;

  constructor(parts: { database: Database; tail: LogTail; filter: SignalFilter; place: SignalPlace }) {
    this.filter = parts.filter;
    this.#database = parts.database;
    this.#tail = parts.tail;
    this.#position = readPosition(parts.place.position);
    this.#query = logFilter(parts.filter, parts.place);
  }

  joined(head: LogPosition): void {
    this.#joinedAt = head;
    this.#sleep.wake();
  }

  hand(signals: readonly Signal[]): void {
    const { afterVersion, sender, since } = this.#query;
    for (const signal of signals) {
      if (afterVersion !== null && signal.version <= afterVersion) continue;
      if (since !== null && signal.time < since) continue;
      if (sender !== null && signal.sender !== sender) continue;
      this.#buffer.push(signal);
    }
    if (this.#buffer.length > MAX_BUFFERED) this.#leave();
    if (this.#buffer.length > 0 || this.#joinedAt === null) this.#sleep.wake();
  }

  async next(options: NextOptions): Promise<SignalBatch> {
    const { abort, limit } = options;
    const deadline = performance.now() + options.waitMs;
    while (!this.#isClosed && abort?.aborted !== true) {
      if (!this.#isFollowing) {
        this.#isFollowing = true;
        this.#tail.follow(this);
      }
      const joinedAt = this.#joinedAt;
      if (joinedAt !== null && isAfter(joinedAt, this.#position)) {
        const found = await this.#catchUp(joinedAt, limit);
        if (found.length > 0) return this.#batch(found);
        continue;
      }
      if (joinedAt !== null && this.#buffer.length > 0) {
        const held = this.#buffer.splice(0, limit);
        const isNew = ({ position }: Signal) => isAfter(readPosition(position), this.#position);
        // It may have started ahead of the tail.
        const taken = isNew(held[0]!) ? held : held.filter(isNew);
        this.#position = readPosition(held.at(-1)!.position);
        if (taken.length > 0) return this.#batch(taken);
        continue;
      }
      const head = this.#tail.head;
      if (joinedAt !== null && head !== null && isAfter(head, this.#position)) this.#position = head;
      const left = deadline - performance.now();
      if (left <= 0) break;
      await this.#sleep.sleep(left, abort);
    }
    return this.#batch([]);
  }

  close(): void {
    this.#isClosed = true;
    this.#leave();
    this.#sleep.wake();
  }

  async #catchUp(upTo: LogPosition, limit: number): Promise<Signal[]> {
    const { position, rows } = await readMatching(this.#database, {
      after: this.#position,
      upTo,
      filter: this.#query,
      limit,
    });
    this.#position = position;
    return rows.map(signalOf);
  }

  #batch(signals: readonly Signal[]): SignalBatch {
    return { signals, position: showPosition(this.#position) };
  }

  #leave(): void {
    this.#tail.leave(this);
    this.#isFollowing = false;
    this.#joinedAt = null;
    this.#buffer = [];
  }
}

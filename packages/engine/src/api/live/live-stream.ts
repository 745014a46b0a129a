/**
 * One stream of a browser: a cursor into the messages of this process. It is read only as fast as the browser receives, so
 * a slow one keeps no memory, and reads its data again when it is too far behind.
 */
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { WakeableSleep } from "../../service/wakeable-sleep.ts";
import type { LiveFeed } from "./live-feed.ts";
import type { openEvent, resyncEvent } from "./live-messages.ts";

export interface StreamTiming {
  readonly heartbeatMs: number;
  /** Then the stream ends, and its browser connects again. */
  readonly mostMs: number;
}

export const TIMING: StreamTiming = { heartbeatMs: 15_000, mostMs: 600_000 };
/** Characters that a connection receives at a time. */
const PIECE = 64 * 1024;

export class LiveStream {
  readonly id = randomUUID();
  readonly #feed: LiveFeed;
  readonly #timing: StreamTiming;
  readonly #sleep = new WakeableSleep();
  #topics: ReadonlySet<string>;
  #cursor: number;
  #isOpen = false;

  constructor(feed: LiveFeed, topics: readonly string[], timing = TIMING) {
    this.#feed = feed;
    this.#timing = timing;
    this.#topics = new Set(topics);
    this.#cursor = feed.buffer.last;
  }

  /** Resolves when every later change of these topics is sent. */
  async change(topics: readonly string[]): Promise<void> {
    const before = this.#topics;
    this.#topics = new Set(topics);
    if (!this.#isOpen) return;
    const ready = this.#feed.watch(this.#topics);
    this.#feed.unwatch(before);
    await ready;
  }

  /** @param last the id of the last event that the browser has received; null: it has received none */
  async *events(stop: AbortSignal, last: string | null): AsyncGenerator<string, void, undefined> {
    const { buffer } = this.#feed;
    const lost = last === null ? [] : this.#resume(last);
    const until = performance.now() + this.#timing.mostMs;
    const off = buffer.onAppend(() => this.#sleep.wake());
    const ready = this.#feed.watch(this.#topics);
    ready.catch(() => {});
    this.#isOpen = true;
    try {
      // Sent at once, so that browser and proxies see the connection.
      yield "retry: 1000\n\n";
      await ready;
      yield this.#event("open", { stream_id: this.id, topics: [...this.#topics] });
      if (lost.length > 0) yield this.#event("resync", { topics: lost });
      yield* this.#messages(stop, until);
    } finally {
      off();
      this.#isOpen = false;
      this.#feed.unwatch(this.#topics);
    }
  }

  async *#messages(stop: AbortSignal, until: number): AsyncGenerator<string, void, undefined> {
    const { buffer } = this.#feed;
    const { heartbeatMs } = this.#timing;
    let beatAt = performance.now() + heartbeatMs;
    while (!stop.aborted && performance.now() < until) {
      const next = buffer.after(this.#cursor, this.#topics, PIECE);
      this.#cursor = next?.cursor ?? buffer.last;
      const text = next?.text ?? this.#event("resync", { topics: [...this.#topics] });
      const now = performance.now();
      if (text !== "") yield text;
      else if (now < beatAt) await this.#sleep.sleep(Math.min(beatAt, until) - now, stop);
      // With the id: a browser that received nothing else for long must not count as too far behind.
      else yield `: heartbeat\nid: ${buffer.idOf(this.#cursor)}\n\n`;
      if (text !== "" || now >= beatAt) beatAt = performance.now() + heartbeatMs;
    }
  }

  /** Continues after this event. Returns the topics of which messages may be lost. */
  #resume(last: string): string[] {
    const { buffer, watched } = this.#feed;
    const cursor = buffer.cursorOf(last);
    if (cursor === null || !buffer.has(cursor)) return [...this.#topics];
    this.#cursor = cursor;
    return [...this.#topics].filter((topic) => !watched.isSince(topic, cursor));
  }

  #event(name: "open", data: z.output<typeof openEvent>): string;
  #event(name: "resync", data: z.output<typeof resyncEvent>): string;
  #event(name: string, data: unknown): string {
    return `id: ${this.#feed.buffer.idOf(this.#cursor)}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}

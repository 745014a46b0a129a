/**
 * The last messages of this process, for all streams. A stream is a cursor into it, so a slow browser holds no memory: it
 * falls behind, and reads its data again when the buffer has dropped what it has not received.
 *
 * The id of a message names this process and counts its messages.
 */
import { randomBytes } from "node:crypto";
import type { LiveMessage } from "./live-messages.ts";

interface Entry {
  readonly topic: string;
  readonly text: string;
}

interface BufferLimits {
  readonly messages: number;
  /** Characters of all messages. */
  readonly size: number;
}

const LIMITS: BufferLimits = { messages: 10_000, size: 16 * 1024 * 1024 };

export class LiveBuffer {
  readonly #epoch = randomBytes(6).toString("hex");
  readonly #limits: BufferLimits;
  readonly #onAppend = new Set<() => void>();
  #entries: Entry[] = [];
  #size = 0;
  /** Number of messages that were dropped: the messages after it are in `#entries`. */
  #dropped = 0;

  constructor(limits: BufferLimits = LIMITS) {
    this.#limits = limits;
  }

  /** The number of the last message. */
  get last(): number {
    return this.#dropped + this.#entries.length;
  }

  append(messages: readonly LiveMessage[]): void {
    if (messages.length === 0) return;
    for (const message of messages) {
      const id = this.idOf(this.last + 1);
      const text = `id: ${id}\nevent: change\ndata: ${JSON.stringify(message)}\n\n`;
      this.#entries.push({ topic: message.topic, text });
      this.#size += text.length;
    }
    this.#shrink();
    this.#wake();
  }

  /** Messages were lost: no cursor is valid any more. */
  reset(): void {
    // One number for what was lost, so that the cursor of a stream that has received all others is invalid, too.
    this.#dropped = this.last + 1;
    this.#entries = [];
    this.#size = 0;
    this.#wake();
  }

  /** Whether all messages after this one are still here. */
  has(cursor: number): boolean {
    return cursor >= this.#dropped && cursor <= this.last;
  }

  /** The next messages of these topics, about `size` characters; null: some were lost. */
  after(
    cursor: number,
    topics: ReadonlySet<string>,
    size: number,
  ): { readonly text: string; readonly cursor: number } | null {
    if (!this.has(cursor)) return null;
    let text = "";
    let at = cursor - this.#dropped;
    for (; at < this.#entries.length && text.length < size; at++) {
      const entry = this.#entries[at]!;
      if (topics.has(entry.topic)) text += entry.text;
    }
    return { text, cursor: this.#dropped + at };
  }

  idOf(cursor: number): string {
    return `${this.#epoch}-${cursor}`;
  }

  /** null: not the id of a message of this process. */
  cursorOf(id: string): number | null {
    const [, epoch, cursor] = /^([\da-f]{12})-(\d{1,15})$/.exec(id) ?? [];
    return epoch === this.#epoch ? Number(cursor) : null;
  }

  onAppend(listener: () => void): () => void {
    this.#onAppend.add(listener);
    return () => this.#onAppend.delete(listener);
  }

  /** A quarter at a time, because the rest is moved. */
  #shrink(): void {
    while (this.#entries.length > this.#limits.messages || this.#size > this.#limits.size) {
      const old = this.#entries.splice(0, Math.ceil(this.#entries.length / 4));
      this.#dropped += old.length;
      for (const { text } of old) this.#size -= text.length;
    }
  }

  #wake(): void {
    for (const listener of this.#onAppend) listener();
  }
}

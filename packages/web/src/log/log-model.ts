/**
 * A log of any size in parts: the index of its lines is read once and continued while the log grows; the text of a chunk is read
 * when one of its lines is shown, and dropped when many others were shown since.
 */
import { bytesOf } from "../api/columns.ts";
import type { components } from "../api/schema.gen.ts";
import { type LogLine, parseLine } from "./log-line.ts";

type Index = components["schemas"]["UiLogIndex"];

export interface LogSource {
  /** With the text of the last chunk, if it is wanted. */
  index(after: number, withTail: boolean): Promise<Index>;
  /** The lines of a range of bytes. */
  text(from: number, to: number): Promise<string>;
}

interface Chunk {
  readonly firstLine: number;
  readonly start: number;
  /** Stored lines; undefined while they are not here. */
  lines?: string[] | undefined;
  loading?: Promise<void> | undefined;
}

const KEPT_CHUNKS = 128;
const CHUNK_BYTES = 64 * 1024;
const PIECE_BYTES = 2 * 1024 * 1024;
const KEPT_PARSED = 2_000;

export class LogModel {
  readonly #source: LogSource;
  readonly #listeners = new Set<() => void>();
  #chunks: Chunk[] = [];
  /** Indexes of chunks with lines; the one shown last is last. */
  readonly #kept = new Set<Chunk>();
  #kinds = new Uint8Array(1024);
  #lines = 0;
  #size = 0;
  #isOver = false;
  #isIndexed = false;
  #error: unknown = null;
  #refreshing: Promise<void> | null = null;
  #again = false;
  #version = 0;
  readonly #parsed = new Map<number, LogLine>();

  constructor(source: LogSource) {
    this.#source = source;
  }

  get lines(): number {
    return this.#lines;
  }
  get size(): number {
    return this.#size;
  }
  /** Nothing more will be written. */
  get isOver(): boolean {
    return this.#isOver;
  }
  /** False until the first index is here. */
  get isIndexed(): boolean {
    return this.#isIndexed;
  }
  get error(): unknown {
    return this.#error;
  }
  /** A byte per line. */
  get kinds(): Uint8Array {
    return this.#kinds.subarray(0, this.#lines);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly version = (): number => this.#version;

  /** Reads what was written since the last time. Calls meanwhile lead to one more reading. */
  refresh(): Promise<void> {
    if (this.#refreshing !== null) {
      this.#again = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#refresh().finally(() => {
      this.#refreshing = null;
      if (this.#again) {
        this.#again = false;
        void this.refresh();
      }
    });
    return this.#refreshing;
  }

  /** The line, or undefined while it is read. */
  line(number: number): LogLine | undefined {
    const known = this.#parsed.get(number);
    if (known !== undefined) return known;
    const chunk = this.#chunkOf(number);
    if (chunk === undefined) return undefined;
    this.#kept.delete(chunk);
    this.#kept.add(chunk);
    if (chunk.lines === undefined) {
      void this.#load(chunk);
      return undefined;
    }
    const stored = chunk.lines[number - chunk.firstLine];
    if (stored === undefined) return undefined;
    const line = parseLine(stored);
    if (this.#parsed.size >= KEPT_PARSED) this.#parsed.clear();
    this.#parsed.set(number, line);
    return line;
  }

  /** The lines of a range, read if needed; `to` is exclusive. */
  async *range(from: number, to: number): AsyncGenerator<LogLine[]> {
    let line = from;
    while (line < to) {
      const first = this.#chunkOf(line);
      if (first === undefined) return;
      const next = this.#after(this.#chunks.indexOf(first), PIECE_BYTES);
      const [end, stop] = next === undefined ? [this.#size, this.#lines] : [next.start, next.firstLine];
      const stored = splitLines(await this.#source.text(first.start, end));
      yield stored.slice(line - first.firstLine, to - first.firstLine).map(parseLine);
      line = stop;
    }
  }

  async #refresh(): Promise<void> {
    try {
      for (let more = true; more; ) {
        const before = this.#size;
        const index = await this.#source.index(before, !this.#isIndexed);
        this.#error = null;
        if (index.lines > 0) await this.#append(index, before);
        this.#isOver = index.is_over && !index.more;
        this.#isIndexed = true;
        this.#changed();
        more = index.more;
      }
    } catch (error) {
      this.#error = error;
      this.#changed();
    }
  }

  async #append(index: Index, before: number): Promise<void> {
    const last = this.#chunks.at(-1);
    // A growing log comes in small parts: they are added to the last chunk.
    const isAdded = last !== undefined && index.size - last.start < CHUNK_BYTES;
    if (isAdded && last.lines !== undefined)
      last.lines.push(...splitLines(await this.#source.text(before, index.size)));
    if (!isAdded)
      for (const [at, start] of index.chunk_starts.entries())
        this.#chunks.push({ firstLine: this.#lines + index.chunk_lines[at]!, start });
    const newest = this.#chunks.at(-1);
    // The first thing that is shown is the end.
    if (!isAdded && newest !== undefined && index.tail !== null) {
      newest.lines = splitLines(index.tail);
      this.#kept.add(newest);
    }
    const total = this.#lines + index.lines;
    if (total > this.#kinds.length) {
      const larger = new Uint8Array(Math.max(total, 2 * this.#kinds.length));
      larger.set(this.kinds);
      this.#kinds = larger;
    }
    this.#kinds.set(bytesOf(index.kinds), this.#lines);
    this.#lines = total;
    this.#size = index.size;
  }

  #load(chunk: Chunk): Promise<void> {
    chunk.loading ??= this.#read(chunk).finally(() => {
      chunk.loading = undefined;
    });
    return chunk.loading;
  }

  async #read(chunk: Chunk): Promise<void> {
    try {
      for (;;) {
        const end = this.#endOf(chunk);
        const lines = splitLines(await this.#source.text(chunk.start, end));
        // The last chunk may have grown meanwhile.
        if (this.#endOf(chunk) !== end) continue;
        chunk.lines = lines;
        break;
      }
      this.#error = null;
      this.#drop();
    } catch (error) {
      this.#error = error;
    }
    this.#changed();
  }

  #drop(): void {
    for (const chunk of this.#kept) {
      if (this.#kept.size <= KEPT_CHUNKS) return;
      if (chunk.loading !== undefined) continue;
      this.#kept.delete(chunk);
      chunk.lines = undefined;
    }
  }

  #endOf(chunk: Chunk): number {
    return this.#chunks[this.#indexOf(chunk.firstLine) + 1]?.start ?? this.#size;
  }

  #chunkOf(line: number): Chunk | undefined {
    return line < 0 || line >= this.#lines ? undefined : this.#chunks[this.#indexOf(line)];
  }

  #indexOf(line: number): number {
    let low = 0;
    let high = this.#chunks.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#chunks[middle]!.firstLine <= line) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The first chunk that begins so many bytes after another. */
  #after(index: number, bytes: number): Chunk | undefined {
    const from = this.#chunks[index]!.start;
    return this.#chunks.slice(index + 1).find(({ start }) => start - from >= bytes);
  }

  #changed(): void {
    this.#version += 1;
    for (const each of this.#listeners) each();
  }
}

function splitLines(text: string): string[] {
  const lines = text.split("\n");
  lines.pop();
  return lines;
}

/**
 * The format of a task log, and its reading side. A log is an append-only file of JSON lines; positions are byte offsets.
 * A reader never gets half a line: a line without its newline is left for the next read.
 */
import { type FSWatcher, watch } from "node:fs";
import { open } from "node:fs/promises";
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import { WakeableSleep } from "../service/wakeable-sleep.ts";

/** One line of a task log. */
export interface LogLine {
  /** ISO instant. */
  readonly t: string;
  readonly level: LogLevel;
  readonly source: "task" | "stdout" | "stderr" | "engine";
  readonly message: string;
  readonly fields?: Readonly<Record<string, Json>>;
}

export interface LogChunk {
  readonly lines: readonly LogLine[];
  /** The offset of the next read. */
  readonly nextOffset: number;
  /** There was nothing more in the file at the time. */
  readonly end: boolean;
}

export interface LogRange {
  /** Byte offset; an offset inside a line is moved to the next line. */
  readonly offset?: number;
  /** Maximum bytes to read; at least one whole line is returned, of any length. */
  readonly limit?: number;
}

const DEFAULT_LIMIT = 1024 * 1024;
/** fs.watch misses changes on some file systems: then a follower is this late. */
const FALLBACK_MS = 1_000;

/** Reads whole lines. A missing log is an empty log: a task without output has no file. */
export async function readLog(path: string, range: LogRange = {}): Promise<LogChunk> {
  const offset = Math.max(0, range.offset ?? 0);
  let limit = Math.max(1, range.limit ?? DEFAULT_LIMIT);
  const handle = await open(path, "r").catch(ignoreMissing);
  if (handle === null) return { lines: [], nextOffset: offset, end: true };
  try {
    const { size } = await handle.stat();
    if (offset >= size) return { lines: [], nextOffset: offset, end: true };
    // One byte before shows whether the offset is the beginning of a line.
    const from = Math.max(0, offset - 1);
    for (;;) {
      const bytes = Buffer.alloc(Math.min(offset - from + limit, size - from));
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, from);
      const text = bytes.subarray(0, bytesRead);
      const start = from === offset ? 0 : text.indexOf(0x0a) + 1;
      const stop = text.lastIndexOf(0x0a) + 1;
      const atEnd = from + bytesRead >= size;
      if (stop > start && start + from >= offset) {
        const lines = parseLines(text.toString("utf8", start, stop));
        return { lines, nextOffset: from + stop, end: atEnd };
      }
      if (atEnd) return { lines: [], nextOffset: Math.max(offset, from + stop), end: true };
      limit *= 2;
    }
  } finally {
    await handle.close();
  }
}

export interface TailOptions {
  readonly offset?: number;
  /** Aborted when the attempt has ended: the rest of the file is still delivered, then the iteration ends. */
  readonly finished: AbortSignal;
  /** Aborted when the reader is gone: the iteration ends at once. */
  readonly stop?: AbortSignal;
}

/** Follows a growing log. Yields only chunks with lines. */
export async function* tailLog(
  path: string,
  options: TailOptions,
): AsyncGenerator<LogChunk, void, undefined> {
  const growth = new Growth(path, options);
  const stopped = (): boolean => options.stop?.aborted === true;
  let offset = options.offset ?? 0;
  try {
    for (;;) {
      // Read before the file: lines written between the last read and the end are read once more.
      const last = options.finished.aborted;
      const seen = growth.mark();
      const chunk = await readLog(path, { offset });
      if (stopped()) return;
      offset = chunk.nextOffset;
      if (chunk.lines.length > 0) yield chunk;
      if (!chunk.end) continue;
      if (last) return;
      await growth.after(seen);
      if (stopped()) return;
    }
  } finally {
    growth.close();
  }
}

/** Wakes a follower when the file may have grown, the attempt ended, or the reader left. */
class Growth {
  readonly #path: string;
  readonly #signals: readonly AbortSignal[];
  readonly #wake = (): void => this.#changed();
  readonly #sleep = new WakeableSleep();
  #watcher: FSWatcher | null = null;
  #count = 0;

  constructor(path: string, options: TailOptions) {
    this.#path = path;
    this.#signals = options.stop === undefined ? [options.finished] : [options.finished, options.stop];
    for (const signal of this.#signals) signal.addEventListener("abort", this.#wake);
  }

  mark(): number {
    this.#watch();
    return this.#count;
  }

  async after(mark: number): Promise<void> {
    if (this.#count !== mark || this.#signals.some((signal) => signal.aborted)) return;
    await this.#sleep.sleep(FALLBACK_MS);
  }

  close(): void {
    for (const signal of this.#signals) signal.removeEventListener("abort", this.#wake);
    this.#watcher?.close();
  }

  #watch(): void {
    if (this.#watcher !== null) return;
    try {
      this.#watcher = watch(this.#path, { persistent: false }, this.#wake);
      this.#watcher.on("error", () => {
        this.#watcher?.close();
        this.#watcher = null;
      });
    } catch {
      // Not there yet: the timer looks again.
    }
  }

  #changed(): void {
    this.#count++;
    this.#sleep.wake();
  }
}

function parseLines(text: string): LogLine[] {
  const lines: LogLine[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    try {
      lines.push(JSON.parse(line) as LogLine);
    } catch {
      // Half a line of a dead writer is shown: it may be the important one.
      lines.push({ t: new Date(0).toISOString(), level: "warn", source: "engine", message: line });
    }
  }
  return lines;
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
  throw error;
}

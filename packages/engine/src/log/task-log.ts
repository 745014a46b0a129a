/**
 * The format of a task log, and how it is read. A log is append-only and has JSON lines; positions are byte offsets. A
 * reader never gets half a line: a line without its newline is left for the next read.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import type { StoredLog } from "./log-store.ts";

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
  /** There was nothing more in the log when it was listed. */
  readonly end: boolean;
}

export interface LogRange {
  /** Byte offset; an offset inside a line is moved to the next line. */
  readonly offset?: number;
  /** Maximum bytes to read; at least one whole line is returned, of any length. */
  readonly limit?: number;
}

const DEFAULT_LIMIT = 1024 * 1024;

/** Reads whole lines. */
export async function readLines(log: StoredLog, range: LogRange = {}): Promise<LogChunk> {
  const { size } = log;
  const offset = Math.max(0, range.offset ?? 0);
  let limit = Math.max(1, range.limit ?? DEFAULT_LIMIT);
  if (offset >= size) return { lines: [], nextOffset: offset, end: true };
  // One byte before shows whether the offset is the beginning of a line.
  const from = Math.max(0, offset - 1);
  for (;;) {
    const to = Math.min(offset + limit, size);
    const text = await log.read(from, to);
    const start = from === offset ? 0 : text.indexOf(0x0a) + 1;
    const stop = text.lastIndexOf(0x0a) + 1;
    const atEnd = to === size || from + text.length < to;
    if (stop > start && start + from >= offset) {
      const lines = parseLines(text.toString("utf8", start, stop));
      return { lines, nextOffset: from + stop, end: atEnd };
    }
    if (atEnd) return { lines: [], nextOffset: Math.max(offset, from + stop), end: true };
    limit *= 2;
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

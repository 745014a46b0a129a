/**
 * Merges the lines of many log files by time. Each file is ordered by itself, so one line per open file is enough. A file is
 * opened when the merge reaches its first unread line and closed after its last one. Memory holds one piece of each file that
 * was written at the same time as others, for logs of any size.
 */
import { type LogLine, readLog } from "../../log/task-log.ts";
import { Heap } from "../../model/pool/heap.ts";
import type { FoundLog, LogSource } from "./run-log-tree.ts";

/** About this much of each open file is in memory. */
const PIECE_BYTES = 32 * 1024;
/** Usually enough for the first line of a file. */
const FIRST_BYTES = 1024;

export interface MergedLine {
  readonly line: LogLine;
  readonly source: LogSource;
}

/** A file and its read position. */
interface LogCursor {
  readonly path: string;
  readonly source: LogSource;
  /** The first unread byte. */
  offset: number;
  /** Its size at the last scan. */
  size: number;
}

interface OpenLog {
  readonly cursor: LogCursor;
  readonly lines: readonly LogLine[];
  at: number;
  /** The time of the next line. A line that is older than its predecessor keeps its place. */
  time: string;
}

export class LogMerge {
  readonly #cursors = new Map<string, LogCursor>();
  /** Files that may have unread lines. */
  readonly #unread = new Set<LogCursor>();

  add({ path, size, source }: FoundLog): void {
    const cursor = this.#cursors.get(path) ?? { path, source, offset: 0, size };
    cursor.size = size;
    this.#cursors.set(path, cursor);
    if (size > cursor.offset) this.#unread.add(cursor);
  }

  /** All lines up to the scanned sizes: a file that keeps growing must not delay the others. */
  async *lines(stop: AbortSignal): AsyncGenerator<MergedLine, void, undefined> {
    const waiting = new Heap<{ cursor: LogCursor; time: string }>((a, b) => isBefore(a, b));
    const open = new Heap<OpenLog>((a, b) => isBefore(a, b));
    for (const cursor of this.#unread) {
      const [first] = (await readLog(cursor.path, { offset: cursor.offset, limit: FIRST_BYTES })).lines;
      if (first) waiting.push({ cursor, time: first.t });
    }
    this.#unread.clear();
    while (!stop.aborted) {
      const next = waiting.peek();
      const first = open.peek();
      if (next && (first === undefined || !isBefore(first, next))) {
        waiting.pop();
        const opened = await nextPiece(next.cursor, "");
        if (opened) open.push(opened);
        continue;
      }
      if (first === undefined) return;
      open.pop();
      yield { line: first.lines[first.at]!, source: first.cursor.source };
      first.at++;
      const line = first.lines[first.at];
      if (line && line.t > first.time) first.time = line.t;
      const rest = line ? first : await nextPiece(first.cursor, first.time);
      if (rest) open.push(rest);
    }
  }
}

async function nextPiece(cursor: LogCursor, after: string): Promise<OpenLog | null> {
  if (cursor.offset >= cursor.size) return null;
  const { lines, nextOffset } = await readLog(cursor.path, { offset: cursor.offset, limit: PIECE_BYTES });
  cursor.offset = nextOffset;
  const [first] = lines;
  return first ? { cursor, lines, at: 0, time: first.t > after ? first.t : after } : null;
}

interface Placed {
  readonly time: string;
  readonly cursor: LogCursor;
}

/** Files with equal times come one after the other, so that simultaneous lines stay together. */
function isBefore(a: Placed, b: Placed): boolean {
  return a.time < b.time || (a.time === b.time && a.cursor.source.name < b.cursor.source.name);
}

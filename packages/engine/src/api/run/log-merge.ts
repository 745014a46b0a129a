/**
 * Merges the lines of many log files by time. Each file is ordered by itself, so one line per open file is enough. A file is
 * opened when the merge reaches its first unread line and closed after its last one. Memory holds one piece of each file that
 * was written at the same time as others, for logs of any size.
 */
import type { StoredLog } from "../../log/log-store.ts";
import { type LogLine, readLines } from "../../log/task-log.ts";
import { Heap } from "../../model/pool/heap.ts";
import type { FoundLog, LogSource } from "./run-log-tree.ts";

/** About this much of each open log is in memory. */
const PIECE_BYTES = 32 * 1024;
/** Usually enough for the first line of a log. */
const FIRST_BYTES = 4 * 1024;
const READ_AT_ONCE = 32;
/** Small logs are kept from the first read on, up to this size in total. */
const KEPT_BYTES = 8 * 1024 * 1024;

export interface MergedLine {
  readonly line: LogLine;
  readonly source: LogSource;
}

/** A log and its read position. */
interface LogCursor {
  readonly source: LogSource;
  /** As it was at the last scan. */
  log: StoredLog;
  /** The first unread byte. */
  offset: number;
}

interface OpenLog {
  readonly cursor: LogCursor;
  readonly lines: readonly LogLine[];
  at: number;
  /** The time of the next line. A line that is older than its predecessor keeps its place. */
  time: string;
}

/** A log that is not open yet. */
interface WaitingLog {
  readonly cursor: LogCursor;
  /** The time of its first unread line. */
  readonly time: string;
  /** Its unread lines, if it is small. */
  readonly opened: OpenLog | null;
}

export class LogMerge {
  readonly #cursors = new Map<string, LogCursor>();
  /** Logs that may have unread lines. */
  readonly #unread = new Set<LogCursor>();

  add({ log, source }: FoundLog): void {
    const cursor = this.#cursors.get(log.key) ?? { source, log, offset: 0 };
    cursor.log = log;
    this.#cursors.set(log.key, cursor);
    if (log.size > cursor.offset) this.#unread.add(cursor);
  }

  /** All lines up to the scanned sizes: a log that keeps growing must not delay the others. */
  async *lines(stop: AbortSignal): AsyncGenerator<MergedLine, void, undefined> {
    const waiting = new Heap<WaitingLog>((a, b) => isBefore(a, b));
    const open = new Heap<OpenLog>((a, b) => isBefore(a, b));
    for (const log of await this.#firstLines(stop)) waiting.push(log);
    while (!stop.aborted) {
      const next = waiting.peek();
      const first = open.peek();
      if (next && (first === undefined || !isBefore(first, next))) {
        waiting.pop();
        const opened = next.opened ?? (await nextPiece(next.cursor, ""));
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

  async #firstLines(stop: AbortSignal): Promise<WaitingLog[]> {
    const cursors = [...this.#unread];
    this.#unread.clear();
    const found: WaitingLog[] = [];
    let kept = 0;
    for (let at = 0; at < cursors.length && !stop.aborted; at += READ_AT_ONCE) {
      const group = cursors.slice(at, at + READ_AT_ONCE);
      const chunks = await Promise.all(
        group.map(({ log, offset }) => readLines(log, { offset, limit: FIRST_BYTES })),
      );
      for (const [index, { lines, nextOffset }] of chunks.entries()) {
        const cursor = group[index]!;
        const [first] = lines;
        if (!first) continue;
        const bytes = nextOffset - cursor.offset;
        const isWhole = nextOffset === cursor.log.size && kept + bytes <= KEPT_BYTES;
        if (isWhole) {
          kept += bytes;
          cursor.offset = nextOffset;
        }
        const opened = isWhole ? { cursor, lines, at: 0, time: first.t } : null;
        found.push({ cursor, time: first.t, opened });
      }
    }
    return found;
  }
}

async function nextPiece(cursor: LogCursor, after: string): Promise<OpenLog | null> {
  const { lines, nextOffset } = await readLines(cursor.log, { offset: cursor.offset, limit: PIECE_BYTES });
  cursor.offset = nextOffset;
  const [first] = lines;
  return first ? { cursor, lines, at: 0, time: first.t > after ? first.t : after } : null;
}

interface Placed {
  readonly time: string;
  readonly cursor: LogCursor;
}

/** Logs with equal times come one after the other, so that simultaneous lines stay together. */
function isBefore(a: Placed, b: Placed): boolean {
  return a.time < b.time || (a.time === b.time && a.cursor.source.name < b.cursor.source.name);
}

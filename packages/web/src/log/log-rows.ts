/** Which lines of a log are shown, in rows: all, or those of some levels or a source with lines around them. Pure. */
import { KIND, LEVELS, type Level } from "./log-line.ts";

export interface LogRows {
  readonly count: number;
  /** The line of a row; -n for a row that stands for n hidden lines. */
  at(row: number): number;
  /** The row of a line, or the first one after it. */
  rowOf(line: number): number;
  readonly isFiltered: boolean;
}

/** Levels, and "trigger" for the lines of triggers. */
export type Kind = Level | "trigger";
export const KINDS: readonly Kind[] = [...LEVELS, "trigger"];

export function kindOf(byte: number): Kind {
  return (byte & KIND.trigger) !== 0 ? "trigger" : LEVELS[byte & KIND.level]!;
}

/** By the number in bits 2 and 3. */
export const SOURCES = ["task", "stdout", "stderr", "engine"] as const;
export type Source = (typeof SOURCES)[number];

function sourceOf(byte: number): Source {
  return SOURCES[(byte & KIND.source) >> 2]!;
}

export interface Filter {
  /** Null: all. */
  readonly kinds: ReadonlySet<Kind> | null;
  readonly source: Source | null;
}

export function allRows(lines: number): LogRows {
  return {
    count: lines,
    at: (row) => row,
    rowOf: (line) => Math.min(line, Math.max(0, lines - 1)),
    isFiltered: false,
  };
}

export function filteredRows(bytes: Uint8Array, { kinds, source }: Filter, context: number): LogRows {
  const wanted = Uint8Array.from({ length: 128 }, (_, byte) =>
    (kinds === null || kinds.has(kindOf(byte))) && (source === null || sourceOf(byte) === source) ? 1 : 0,
  );
  const rows: number[] = [];
  let next = 0;
  let until = -1;
  for (let line = 0; line < bytes.length; line += 1) {
    if (wanted[bytes[line]!] === 0) {
      if (line <= until) {
        rows.push(line);
        next = line + 1;
      }
      continue;
    }
    const from = Math.max(next, line - context);
    if (from > next) rows.push(next - from);
    for (let each = from; each <= line; each += 1) rows.push(each);
    next = line + 1;
    until = line + context;
  }
  if (next < bytes.length) rows.push(next - bytes.length);
  return {
    count: rows.length,
    at: (row) => rows[row]!,
    rowOf: (line) => {
      let low = 0;
      let high = rows.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (lineFrom(rows, middle) < line) low = middle + 1;
        else high = middle;
      }
      return Math.min(low, Math.max(0, rows.length - 1));
    },
    isFiltered: true,
  };
}

/** The line of a row; of a row for hidden lines, the last hidden one. */
function lineFrom(rows: readonly number[], row: number): number {
  const value = rows[row]!;
  if (value >= 0) return value;
  return (row === 0 ? 0 : rows[row - 1]! + 1) - value - 1;
}

/** Which lines of a log are shown, in rows: all, or those of some levels with lines around them. Pure. */
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

export function allRows(lines: number): LogRows {
  return {
    count: lines,
    at: (row) => row,
    rowOf: (line) => Math.min(line, Math.max(0, lines - 1)),
    isFiltered: false,
  };
}

export function filteredRows(kinds: Uint8Array, shown: ReadonlySet<Kind>, context: number): LogRows {
  const wanted = new Uint8Array(32);
  for (let byte = 0; byte < 32; byte += 1) wanted[byte] = shown.has(kindOf(byte)) ? 1 : 0;
  const rows: number[] = [];
  let next = 0;
  let until = -1;
  for (let line = 0; line < kinds.length; line += 1) {
    if (wanted[kinds[line]!] === 0) {
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
  if (next < kinds.length) rows.push(next - kinds.length);
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

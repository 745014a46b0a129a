/** The dates below the bars of a grid, and the scale of the bars. Pure. */
import { clock, monthDay, type Zone } from "../time/format.ts";
import { type GridColumn, tookOf, usualOf } from "./grid-model.ts";
import type { BarScale } from "./grid-painter.ts";

const LABEL_WIDTH = 66;
const DAYS = 3 * 86_400_000;

/** Days if the runs span several of them, times otherwise, as many as have space. */
export function axisDates(columns: readonly GridColumn[], zone: Zone, step: number): Map<number, string> {
  const dates = new Map<number, string>();
  const [first, last] = [columns[0], columns.at(-1)];
  if (first === undefined || last === undefined) return dates;
  const inDays = dateOf(last) - dateOf(first) > DAYS;
  const every = Math.ceil(LABEL_WIDTH / step);
  // Counted from the newest one, so that labels stay where they are while older runs are loaded.
  for (let index = columns.length - 1 - (every >> 1); index >= 0; index -= every) {
    const at = dateOf(columns[index]!);
    dates.set(index, inDays ? monthDay(at, zone) : clock(at, zone).slice(0, 5));
  }
  return dates;
}

export function dateOf({ logicalDate, runAfter }: GridColumn): number {
  return logicalDate ?? runAfter;
}

/** A run of more than four times the usual duration does not make all others invisible. */
export function barScale(columns: readonly GridColumn[], now: number): BarScale {
  const usual = usualOf(columns);
  const longest = Math.max(1, ...columns.map((column) => tookOf(column, now) ?? 0));
  return { usual, most: usual === null || usual === 0 ? longest : Math.min(longest, usual * 4) };
}

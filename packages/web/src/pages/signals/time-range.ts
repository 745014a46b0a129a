/** The range of time that the page shows, from the address: the last hour, or a range that was selected. Pure. */

export const BUCKETS = 60;

export const LASTS = { "15m": 15, "1h": 60, "6h": 360, "24h": 1_440, "7d": 10_080 } as const;
export type Last = keyof typeof LASTS;

export interface TimeRange {
  /** Milliseconds; both ends are multiples of the step. */
  readonly from: number;
  readonly to: number;
  readonly step: number;
  /** The list follows the newest signals. */
  readonly isLive: boolean;
}

export function lastOf(text: string | undefined): Last {
  return text !== undefined && Object.hasOwn(LASTS, text) ? (text as Last) : "1h";
}

/** `from` and `to` are ISO times; without both, the range ends now. */
export function rangeOf(
  asked: { readonly from?: string | undefined; readonly to?: string | undefined; readonly last: Last },
  now: number,
): TimeRange {
  const [from, to] = [Date.parse(asked.from ?? ""), Date.parse(asked.to ?? "")];
  if (from < to) return { from, to, step: (to - from) / BUCKETS, isLive: false };
  const step = (LASTS[asked.last] * 60_000) / BUCKETS;
  const end = (Math.floor(now / step) + 1) * step;
  return { from: end - BUCKETS * step, to: end, step, isLive: true };
}

/** The times of some buckets, whichever was selected first; whole milliseconds, at least one second. */
export function selectedRange(
  { from, step }: TimeRange,
  first: number,
  last: number,
): { readonly from: string; readonly to: string } {
  const [low, high] = first < last ? [first, last] : [last, first];
  const start = Math.floor(from + low * step);
  const end = Math.max(Math.ceil(from + (high + 1) * step), start + 1_000);
  return { from: new Date(start).toISOString(), to: new Date(end).toISOString() };
}

export interface Series {
  readonly name: string | null;
  readonly counts: readonly number[];
}

/** The sum of all series per bucket. */
export function totals(series: readonly Series[]): number[] {
  const sums = new Array<number>(BUCKETS).fill(0);
  for (const { counts } of series)
    counts.forEach((amount, at) => {
      sums[at] = (sums[at] ?? 0) + amount;
    });
  return sums;
}

/** The end of the axis: 1, 2 or 5 times a power of ten. */
export function niceTop(most: number): number {
  if (most <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5, 10].find((each) => each * power >= most) ?? 10) * power;
}

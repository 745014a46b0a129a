/** Where the bars of the home timeline are: lanes for runs that overlap, pixels for times. Pure. */

export interface Bar {
  readonly runId: string;
  readonly state: string;
  readonly from: number;
  /** null: the run goes on. */
  readonly to: number | null;
}

export interface PlacedBar extends Bar {
  readonly x: number;
  readonly width: number;
  readonly lane: number;
}

export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly width: number;
}

const LEAST_WIDTH = 2;
const MOST_LANES = 3;

export function xOf(at: number, { from, to, width }: Scale): number {
  return ((at - from) / (to - from)) * width;
}

/** Lengths of the timeline while the first of its runs is younger than the time that was chosen. */
const LENGTHS = [1, 2, 5, 15, 30, 60, 180, 360, 720].map((minutes) => minutes * 60_000);

/** Where the timeline begins: not long before its first run, so that a new installation has more than an empty axis. */
export function firstShown(starts: readonly number[], from: number, now: number): number {
  const first = starts.reduce((least, each) => Math.min(least, each), now);
  const length = LENGTHS.find((each) => each >= now - first) ?? now - from;
  return Math.max(from, now - length);
}

export interface Slices {
  readonly success: readonly number[];
  readonly failed: readonly number[];
}

/** Ended runs, counted in as many slices of the time shown. */
export function slicesOf(bars: readonly Bar[], from: number, now: number, slices: number): Slices {
  const found = { success: new Array<number>(slices).fill(0), failed: new Array<number>(slices).fill(0) };
  for (const { state, to } of bars) {
    if (to === null || to < from || (state !== "success" && state !== "failed")) continue;
    found[state][Math.min(slices - 1, Math.floor(((to - from) / (now - from)) * slices))]! += 1;
  }
  return found;
}

/** Runs that overlap get lanes of their own, up to three; further ones are drawn over the last. */
export function placeBars(
  bars: readonly Bar[],
  scale: Scale,
  now: number,
): { placed: PlacedBar[]; lanes: number } {
  const ends: number[] = [];
  const placed: PlacedBar[] = [];
  for (const bar of bars) {
    const x = Math.max(0, xOf(bar.from, scale));
    const end = Math.min(scale.width, xOf(bar.to ?? now, scale));
    if (end < 0 || x > scale.width) continue;
    const width = Math.max(LEAST_WIDTH, end - x);
    const free = ends.findIndex((until) => until <= x + 0.5);
    const lane = free >= 0 ? free : Math.min(ends.length, MOST_LANES - 1);
    ends[lane] = Math.max(ends[lane] ?? 0, x + width);
    placed.push({ ...bar, x, width, lane });
  }
  return { placed, lanes: Math.max(1, ends.length) };
}

const STEPS = [
  60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
];

/** Round times at least `gap` pixels apart, in a zone with this offset from UTC. */
export function ticks(scale: Scale, gap: number, zoneOffsetMs: number): number[] {
  const length = scale.to - scale.from;
  const step = STEPS.find((each) => (each / length) * scale.width >= gap) ?? STEPS.at(-1)!;
  const first = Math.ceil((scale.from + zoneOffsetMs) / step) * step - zoneOffsetMs;
  const found: number[] = [];
  for (let at = first; at <= scale.to; at += step) found.push(at);
  return found;
}

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

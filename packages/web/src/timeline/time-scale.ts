/** The window of a time axis: zoom, pan and ticks. Times in ms after the origin. Pure. */

export interface Window {
  readonly from: number;
  readonly to: number;
}

const LEAST_MS = 20;

/** All of it, with a little room at both ends. */
export function wholeOf(from: number, to: number): Window {
  const length = Math.max(to - from, LEAST_MS);
  return { from: from - length * 0.01, to: to + length * 0.06 };
}

/** Keeps a window inside the whole. */
export function within({ from, to }: Window, whole: Window): Window {
  const length = Math.min(Math.max(to - from, LEAST_MS), whole.to - whole.from);
  const start = Math.min(Math.max(from, whole.from), whole.to - length);
  return { from: start, to: start + length };
}

/** A factor above 1 shows more. The time under the pointer stays there. */
export function zoomed(view: Window, factor: number, around: number, whole: Window): Window {
  return within(
    { from: around - (around - view.from) * factor, to: around + (view.to - around) * factor },
    whole,
  );
}

export function panned(view: Window, ms: number, whole: Window): Window {
  return within({ from: view.from + ms, to: view.to + ms }, whole);
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
  172_800_000, 604_800_000,
] as const;

/** Round moments in a window, at least `gap` pixels apart; `origin` is the moment of zero in ms since 1970. */
export function ticksOf(
  view: Window,
  width: number,
  origin: number,
  gap = 80,
): { readonly step: number; readonly ticks: number[] } {
  const perPx = (view.to - view.from) / Math.max(1, width);
  const step = STEPS.find((each) => each >= gap * perPx) ?? STEPS.at(-1)!;
  const ticks: number[] = [];
  for (let at = Math.ceil((origin + view.from) / step) * step; at <= origin + view.to; at += step)
    ticks.push(at - origin);
  return { step, ticks };
}

import { describe, expect, it } from "vitest";
import { type Bar, firstShown, placeBars, slicesOf, ticks } from "./timeline-bars.ts";

const scale = { from: 0, to: 1_000, width: 500 };
const bar = (from: number, to: number | null, runId = `${from}`): Bar => ({
  runId,
  state: "success",
  from,
  to,
});

it("begins not long before the first run, and never before the chosen time", () => {
  const minute = 60_000;
  const [from, now] = [0, 1_440 * minute];
  expect(firstShown([], from, now)).toBe(now - minute);
  expect(firstShown([now - 6 * minute, now - minute], from, now)).toBe(now - 15 * minute);
  expect(firstShown([now - 721 * minute], from, now)).toBe(from);
  expect(firstShown([now - 90 * minute], now - 60 * minute, now)).toBe(now - 60 * minute);
});

it("counts ended runs by slice", () => {
  const failed = { ...bar(200, 900), state: "failed" };
  expect(slicesOf([bar(-9, -1), bar(0, 100), bar(0, 1_000), bar(1, null), failed], 0, 1_000, 4)).toEqual({
    success: [1, 0, 0, 1],
    failed: [0, 0, 0, 1],
  });
});

describe("placeBars", () => {
  it("maps times to pixels, cuts at the edges, and leaves out what is outside", () => {
    const { placed } = placeBars(
      [bar(-500, -100), bar(-100, 100), bar(200, 400), bar(1_100, 1_200)],
      scale,
      1_000,
    );
    expect(placed.map(({ x, width }) => [x, width])).toEqual([
      [0, 50],
      [100, 100],
    ]);
  });

  it("draws a running bar until now, and a short one at least 2 px wide", () => {
    const { placed } = placeBars([bar(0, 1), bar(500, null)], scale, 900);
    expect(placed.map(({ width }) => width)).toEqual([2, 200]);
  });

  it("gives overlapping runs their own lanes, three at most", () => {
    const overlapping = [bar(0, 900), bar(10, 900), bar(20, 900), bar(30, 900), bar(950, 960)];
    const { placed, lanes } = placeBars(overlapping, scale, 1_000);
    expect(placed.map(({ lane }) => lane)).toEqual([0, 1, 2, 2, 0]);
    expect(lanes).toBe(3);
  });
});

describe("ticks", () => {
  it("are round in the zone that is shown", () => {
    const day = 86_400_000;
    const hour = 3_600_000;
    const inKolkata = ticks({ from: 0, to: day, width: 1_000 }, 60, 5.5 * hour);
    expect(inKolkata.map((at) => ((at + 5.5 * hour) / hour) % 2)).toEqual(inKolkata.map(() => 0));
    expect(inKolkata.length).toBe(12);
  });
});

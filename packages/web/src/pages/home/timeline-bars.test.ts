import { describe, expect, it } from "vitest";
import { type Bar, placeBars, ticks } from "./timeline-bars.ts";

const scale = { from: 0, to: 1_000, width: 500 };
const bar = (from: number, to: number | null, runId = `${from}`): Bar => ({
  runId,
  state: "success",
  from,
  to,
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

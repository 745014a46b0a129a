import { expect, it } from "vitest";
import { BUCKETS, lastOf, niceTop, rangeOf, selectedRange, totals } from "./time-range.ts";

const now = Date.parse("2026-01-31T08:00:30Z");

it("ends after now, at a multiple of its step, so that the bars keep their places", () => {
  const range = rangeOf({ last: "1h" }, now);
  expect(range).toEqual({
    from: range.to - 3_600_000,
    to: Date.parse("2026-01-31T08:01:00Z"),
    step: 60_000,
    isLive: true,
  });
  expect(rangeOf({ last: "1h" }, now + 20_000)).toEqual(range);
  expect(rangeOf({ last: "1h" }, now + 30_000).to).toBe(range.to + 60_000);
});

it("shows exactly the selected range, and ignores a bad one", () => {
  const asked = { from: "2026-01-31T07:00:00Z", to: "2026-01-31T07:01:00Z", last: lastOf("15m") };
  expect(rangeOf(asked, now)).toMatchObject({ step: 1_000, isLive: false });
  for (const bad of [{ from: asked.to, to: asked.from }, { from: "x", to: asked.to }, { from: asked.from }])
    expect(rangeOf({ last: "1h", ...bad }, now).isLive).toBe(true);
  expect(lastOf("forever")).toBe("1h");
});

it("selects buckets in either direction, and at least a second", () => {
  const range = rangeOf({ last: "1h" }, now);
  const both = { from: "2026-01-31T07:03:00.000Z", to: "2026-01-31T07:06:00.000Z" };
  expect(selectedRange(range, 2, 4)).toEqual(both);
  expect(selectedRange(range, 4, 2)).toEqual(both);
  const short = rangeOf({ from: "2026-01-31T07:00:00Z", to: "2026-01-31T07:00:06Z", last: "1h" }, now);
  expect(selectedRange(short, 0, 0).to).toBe("2026-01-31T07:00:01.000Z");
});

it("sums series, and chooses the end of the axis", () => {
  const counts = Array.from({ length: BUCKETS }, (_, at) => at);
  expect(
    totals([
      { name: "a", counts },
      { name: null, counts },
    ])[3],
  ).toBe(6);
  expect([0, 1, 3, 5, 7, 11, 420].map(niceTop)).toEqual([1, 1, 5, 5, 10, 20, 500]);
});

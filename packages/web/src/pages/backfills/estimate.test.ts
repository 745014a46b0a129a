import { expect, it } from "vitest";
import { estimate, usualMs } from "./estimate.ts";

it("takes the median of the runs that have ended", () => {
  expect(usualMs({ started: [0, 10, 20, null, 40], ended: [5, 40, 22, null, null] })).toBe(5);
  expect(usualMs({ started: [null, 3], ended: [null, null] })).toBeNull();
});

it("counts rounds of runs", () => {
  expect([estimate(365, 60_000, 10), estimate(0, 60_000, 10), estimate(1, 60_000, 10)]).toEqual([
    37 * 60_000,
    0,
    60_000,
  ]);
});

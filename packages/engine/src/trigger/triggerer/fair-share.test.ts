import { expect, it } from "vitest";
import { fairShare, slackOf } from "./fair-share.ts";

const load = (triggers: number, capacity = 1_000) => ({ triggers, capacity });

it.each([
  ["a single triggerer has all its triggers", [load(10)], 5, 15],
  ["two share", [load(100), load(0)], 0, 50],
  ["an odd number rounds up", [load(100), load(0)], 1, 51],
  ["a full triggerer takes no more", [load(90), load(10, 10), load(0)], 0, 45],
  ["several full triggerers", [load(10, 10), load(10, 10), load(80)], 40, 120],
  ["more triggers than capacity", [load(5, 5), load(5, 5)], 100, 5],
  ["no triggers", [load(0), load(0)], 0, 0],
])("%s", (_, loads, free, share) => {
  expect(fairShare(loads, free)).toBe(share);
  expect(fairShare(loads.toReversed(), free)).toBe(share);
});

it("allows some slack", () => {
  expect([slackOf(0), slackOf(40), slackOf(1_000)]).toEqual([4, 4, 100]);
});

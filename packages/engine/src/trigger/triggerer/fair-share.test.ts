import { expect, it } from "vitest";
import { fairShare, slackOf } from "./fair-share.ts";

const load = (triggers: number, capacity = 1_000) => ({ triggers, capacity });

it.each([
  ["one has all of its own", [load(10)], 5, 15],
  ["two share", [load(100), load(0)], 0, 50],
  ["the odd one rounds up", [load(100), load(0)], 1, 51],
  ["a full one takes no more", [load(90), load(10, 10), load(0)], 0, 45],
  ["several full ones", [load(10, 10), load(10, 10), load(80)], 40, 120],
  ["more than all can take", [load(5, 5), load(5, 5)], 100, 5],
  ["nothing to do", [load(0), load(0)], 0, 0],
])("%s", (_, loads, free, share) => {
  expect(fairShare(loads, free)).toBe(share);
  expect(fairShare(loads.toReversed(), free)).toBe(share);
});

it("leaves some slack", () => {
  expect([slackOf(0), slackOf(40), slackOf(1_000)]).toEqual([4, 4, 100]);
});

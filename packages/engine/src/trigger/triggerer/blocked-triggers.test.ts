import { expect, it } from "vitest";
import { BlockedTriggers } from "./blocked-triggers.ts";

const stack = "at wait (node:fs:1:2)\n    at PriceTrigger.run (prices.ts:12:7)\n    at main.ts:1:1";
const stall = { id: 1, isFailed: false };
const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));

it("counts the stalls of each trigger class, and names the latest first with its place", () => {
  const blocked = new BlockedTriggers();
  blocked.record({ ...stall, kind: "PriceTrigger", ms: 1_200.4, stack }, at(1));
  blocked.record({ ...stall, kind: null, ms: 90, stack: "" }, at(2));
  blocked.record({ ...stall, kind: "PriceTrigger", ms: 300, stack }, at(3));
  expect(blocked.facts().blocked).toBe(3);
  expect(blocked.facts().blockedBy).toEqual([
    {
      kind: "PriceTrigger",
      count: 2,
      longestMs: 1_200,
      lastAt: at(3).toISOString(),
      place: "at PriceTrigger.run (prices.ts:12:7)",
    },
    { kind: null, count: 1, longestMs: 90, lastAt: at(2).toISOString(), place: "" },
  ]);
});

it("keeps the five classes that blocked last", () => {
  const blocked = new BlockedTriggers();
  for (let n = 0; n < 7; n++) blocked.record({ ...stall, kind: `T${n}`, ms: 1, stack }, at(n));
  blocked.record({ ...stall, kind: "T3", ms: 1, stack }, at(9));
  expect(blocked.facts().blockedBy.map(({ kind }) => kind)).toEqual(["T3", "T6", "T5", "T4", "T2"]);
  expect(blocked.facts().blocked).toBe(8);
});

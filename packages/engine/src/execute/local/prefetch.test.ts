import { expect, test } from "vitest";
import { Prefetch } from "./prefetch.ts";

test("prefetches more tasks the shorter they are, and none if they are long", () => {
  const prefetch = new Prefetch(500);
  const after = (ms: number): number => {
    for (let at = 0; at < 200; at++) prefetch.observe(ms);
    return prefetch.depth(4);
  };
  expect(after(0.1)).toBe(500);
  expect(after(1)).toBe(160);
  expect(after(20)).toBe(8);
  expect(after(60_000)).toBe(0);
  expect(after(0)).toBe(500);
});

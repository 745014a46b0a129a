import { expect, test } from "vitest";
import { Prefetch } from "./prefetch.ts";

test("the shorter the tasks, the more are fetched ahead; long ones are not hoarded", () => {
  const prefetch = new Prefetch(50);
  const after = (ms: number): number => {
    for (let at = 0; at < 200; at++) prefetch.observe(ms);
    return prefetch.depth(4);
  };
  expect(after(0.1)).toBe(50);
  expect(after(1)).toBe(16);
  expect(after(4)).toBe(4);
  expect(after(60_000)).toBe(0);
  expect(after(0)).toBe(50);
});

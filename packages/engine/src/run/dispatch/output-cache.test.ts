import { expect, it } from "vitest";
import { OutputCache } from "./output-cache.ts";

it("bounds any number of small values, and drops the oldest first", () => {
  const cache = new OutputCache(100_000);
  for (let n = 0; n < 10_000; n++) cache.set(`1/task/${n}`, 1, 1);
  expect(cache.size).toBeLessThan(500);
  expect(cache.size).toBeGreaterThan(300);
  expect(cache.has("1/task/0")).toBe(false);
  expect(cache.get("1/task/9999")).toBe(1);
});

it("keeps no value that would take an eighth of it, and forgets what it held under that key", () => {
  const cache = new OutputCache(10_000);
  cache.set("key", "small", 7);
  cache.set("key", "large", 2_000);
  expect(cache.has("key")).toBe(false);
  expect(cache.size).toBe(0);
});

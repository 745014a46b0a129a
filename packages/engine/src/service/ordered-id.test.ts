import { expect, it } from "vitest";
import { orderedId } from "./ordered-id.ts";

it("returns ids of version 7 that begin with the time", () => {
  const before = Date.now();
  const id = orderedId();
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const time = Number.parseInt(id.replace("-", "").slice(0, 12), 16);
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThanOrEqual(Date.now());
});

it("returns ids in ascending order, also within a millisecond", () => {
  const ids = Array.from({ length: 20_000 }, orderedId);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { failingReason } from "./failing.ts";

const runs = (...states: string[]) => states.map((state, i) => ({ run_id: `r${i}`, state }));

test("failingReason requires `limit` consecutive failures, including the newest run", () => {
  expect(failingReason(runs("failed", "failed"), 3)).toBeNull();
  expect(failingReason(runs("failed", "failed", "success"), 3)).toBeNull();
  expect(failingReason(runs("success", "failed", "failed", "failed"), 3)).toBeNull();
  expect(failingReason(runs("failed", "failed", "failed"), 3)).toBe(
    "the last 3 scheduled runs have failed, up to r0 (pauseAfterFailures)",
  );
  expect(failingReason(runs("failed"), 1)).toMatch(/^the last scheduled run has failed/);
  expect(failingReason([], 0)).toBeNull();
});

test("failingReason depends on the newest runs only", () => {
  const state = fc.constantFrom("failed", "success");
  fc.assert(
    fc.property(fc.array(state), fc.integer({ min: 1, max: 5 }), (states, limit) => {
      const isFailing = states.length >= limit && states.slice(0, limit).every((each) => each === "failed");
      expect(failingReason(runs(...states), limit) !== null).toBe(isFailing);
    }),
  );
});

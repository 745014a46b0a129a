import fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_BACKOFF_MS, retryDelayMs } from "./backoff.ts";

const failed = { dagId: "sales", runId: "r1", taskId: "load", mapIndex: -1, tryNumber: 1 };

test("a constant delay is exactly retryDelayMs, at any length", () => {
  const policy = { retryDelayMs: 3 * MAX_BACKOFF_MS, retryBackoff: 1, maxRetryDelayMs: null };
  expect(retryDelayMs(policy, { ...failed, tryNumber: 7 })).toBe(3 * MAX_BACKOFF_MS);
  expect(retryDelayMs({ ...policy, retryDelayMs: 0 }, failed)).toBe(0);
  expect(retryDelayMs({ ...policy, maxRetryDelayMs: 500 }, failed)).toBe(500);
});

test("an exponential delay of try n lies in [b, 2b) with b = delay * backoff^(n-1), below both caps", () => {
  const delay = fc.integer({ min: 0, max: 600_000 });
  const backoff = fc.double({ min: 1.01, max: 10, noNaN: true });
  const cap = fc.option(fc.integer({ min: 1, max: 10_000_000 }));
  fc.assert(
    fc.property(
      delay,
      backoff,
      cap,
      fc.integer({ min: 1, max: 2_000 }),
      fc.string(),
      (ms, factor, max, tryNumber, runId) => {
        const policy = { retryDelayMs: ms, retryBackoff: factor, maxRetryDelayMs: max };
        const actual = retryDelayMs(policy, { ...failed, runId, tryNumber });
        const base = Math.max(
          1,
          Math.min(MAX_BACKOFF_MS, ms === 0 ? 0 : Math.ceil(ms * factor ** (tryNumber - 1))),
        );
        const top = Math.min(MAX_BACKOFF_MS, max ?? MAX_BACKOFF_MS);
        expect(Number.isInteger(actual)).toBe(true);
        expect(actual).toBeGreaterThanOrEqual(Math.min(base, top));
        expect(actual).toBeLessThanOrEqual(Math.min(2 * base - 1, top));
        expect(retryDelayMs(policy, { ...failed, runId, tryNumber })).toBe(actual);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("delays of tasks that failed together spread over the whole range", () => {
  const policy = { retryDelayMs: 1000, retryBackoff: 2, maxRetryDelayMs: null };
  const tenths = new Array<number>(10).fill(0);
  for (let i = 0; i < 10_000; i++) {
    const delay = retryDelayMs(policy, { ...failed, taskId: `task_${i}` });
    tenths[Math.floor((delay - 1000) / 100)]!++;
  }
  for (const share of tenths) expect(share).toBeGreaterThan(850);
});

test("the spread depends on the map index and the try", () => {
  const policy = { retryDelayMs: 100_000, retryBackoff: 2, maxRetryDelayMs: null };
  const delays = [0, 1, 2, 3].map((mapIndex) => retryDelayMs(policy, { ...failed, mapIndex }));
  expect(new Set(delays).size).toBe(4);
});

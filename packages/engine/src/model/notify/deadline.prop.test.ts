import type { DeadlineManifest } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  averageMs,
  DELIVERY_ATTEMPTS,
  type DeadlineFacts,
  deadlineDue,
  deadlineVerdict,
  deliveryPauseMs,
} from "./deadline.ts";

const instant = fc.integer({ min: 0, max: 4_000_000_000_000 });
const length = fc.integer({ min: 0, max: 86_400_000_000 });
const facts: fc.Arbitrary<DeadlineFacts> = fc.record({
  queuedAt: instant,
  logicalDate: fc.option(instant),
  isBackfill: fc.boolean(),
  startedAt: fc.option(instant),
  lastMs: fc.array(length, { maxLength: 30 }),
});
const after: fc.Arbitrary<DeadlineManifest["after"]> = fc.oneof(
  fc.constantFrom("queued" as const, "logicalDate" as const, "start" as const),
  fc
    .record({ averageOf: fc.integer({ min: 1, max: 20 }), less: fc.integer({ min: 0, max: 19 }) })
    .map(({ averageOf, less }) => ({ averageOf, atLeast: Math.max(1, averageOf - less) })),
);

describe("deadlineDue", () => {
  it("adds a fixed time to the fact it counts from", () => {
    fc.assert(
      fc.property(facts, length, (run, withinMs) => {
        expect(deadlineDue({ after: "queued", withinMs }, run)).toBe(run.queuedAt + withinMs);
        const byDate = run.logicalDate === null || run.isBackfill ? null : run.logicalDate + withinMs;
        expect(deadlineDue({ after: "logicalDate", withinMs }, run)).toBe(byDate);
        const byStart = run.startedAt === null ? null : run.startedAt + withinMs;
        expect(deadlineDue({ after: "start", withinMs }, run)).toBe(byStart);
      }),
    );
  });

  it("moves by exactly the added time and stays a whole number", () => {
    fc.assert(
      fc.property(facts, after, length, length, (run, from, withinMs, more) => {
        const due = deadlineDue({ after: from, withinMs }, run);
        const later = deadlineDue({ after: from, withinMs: withinMs + more }, run);
        if (due === null) {
          expect(later).toBe(null);
          return;
        }
        expect(Number.isInteger(due)).toBe(true);
        expect(Math.abs((later ?? 0) - due - more)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("averages at most the requested number of runs, and is null if there are too few", () => {
    fc.assert(
      fc.property(facts, fc.integer({ min: 1, max: 20 }), length, (run, runs, withinMs) => {
        const average = { after: { averageOf: runs, atLeast: runs }, withinMs };
        const due = deadlineDue(average, run);
        expect(due === null).toBe(run.startedAt === null || run.lastMs.length < runs);
        expect(deadlineDue(average, { ...run, lastMs: run.lastMs.slice(0, runs) })).toBe(due);
      }),
    );
  });

  it("is null beyond the last representable date", () => {
    const run = {
      queuedAt: 8_640_000_000_000_000,
      logicalDate: null,
      isBackfill: false,
      startedAt: null,
      lastMs: [],
    };
    expect(deadlineDue({ after: "queued", withinMs: 1 }, run)).toBe(null);
    expect(deadlineDue({ after: "queued", withinMs: 0 }, run)).toBe(run.queuedAt);
  });
});

describe("an average", () => {
  it("lies between the shortest and the longest length, in any order", () => {
    fc.assert(
      fc.property(fc.array(length, { minLength: 1, maxLength: 50 }), (lengths) => {
        const average = averageMs(lengths, 1) ?? Number.NaN;
        expect(average).toBeGreaterThanOrEqual(Math.min(...lengths) - 1e-3);
        expect(average).toBeLessThanOrEqual(Math.max(...lengths) + 1e-3);
        expect(averageMs(lengths.toReversed(), 1)).toBeCloseTo(average, 3);
      }),
    );
  });

  it("is null for fewer lengths than required", () => {
    expect(averageMs([], 0)).toBe(null);
    expect(averageMs([5], 2)).toBe(null);
    expect(averageMs([5, 7], 2)).toBe(6);
  });
});

describe("the verdict", () => {
  it("is exactly one of three, and does not change after the deadline", () => {
    fc.assert(
      fc.property(instant, fc.option(instant), instant, instant, (dueAt, succeededAt, now, later) => {
        const verdict = deadlineVerdict(dueAt, { succeededAt, now });
        const inTime = succeededAt !== null && succeededAt <= dueAt;
        expect(verdict).toBe(inTime ? "met" : now < dueAt ? "pending" : "missed");
        if (verdict === "pending") return;
        expect(deadlineVerdict(dueAt, { succeededAt, now: Math.max(now, later) })).toBe(verdict);
      }),
    );
  });
});

describe("a failed delivery", () => {
  it("waits longer after each failure, up to 15 minutes, and is given up after the last attempt", () => {
    const pauses = Array.from({ length: DELIVERY_ATTEMPTS + 3 }, (_, at) => deliveryPauseMs(at + 1));
    const rests = pauses.slice(0, DELIVERY_ATTEMPTS - 1);
    expect(rests[0]).toBe(5_000);
    expect(rests.at(-1)).toBe(900_000);
    for (const [at, rest] of rests.entries()) expect(rest).toBeGreaterThanOrEqual(rests[at - 1] ?? 0);
    expect(pauses.slice(DELIVERY_ATTEMPTS - 1)).toEqual([null, null, null, null]);
  });
});

import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type TimeSchedule, ticksOf } from "./ticks.ts";
import { type DueRun, jitterOf, nextRun, validateSchedule } from "./timetable.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const BEGIN = Date.UTC(2026, 2, 20);
/** Covers the clock changes of Berlin and New York. */
const END = BEGIN + 20 * DAY;

const dates = fc
  .uniqueArray(fc.integer({ min: 0, max: 20 * 24 * 4 }), { minLength: 1, maxLength: 30 })
  .map((quarters) => ({
    kind: "dates" as const,
    dates: quarters.sort((a, b) => a - b).map((n) => new Date(BEGIN + (n * HOUR) / 4).toISOString()),
  }));

const single = fc.oneof(
  dates,
  fc.record({
    kind: fc.constant("cron" as const),
    expression: fc.constantFrom("0 2 * * *", "30 */6 * * *", "0 9 * * 1-5", "15,45 1-3 * * *"),
    timezone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"),
    style: fc.constant("trigger" as const),
  }),
  fc.record({
    kind: fc.constant("interval" as const),
    everyMs: fc.constantFrom(HOUR, 7 * HOUR, DAY),
    style: fc.constant("trigger" as const),
  }),
);
const several = fc
  .array(single, { minLength: 2, maxLength: 4 })
  .map((of) => ({ kind: "several" as const, of }));

/** All ticks of a schedule from BEGIN to END, in order. */
function listed(schedule: TimeSchedule): number[] {
  const ticks = ticksOf(schedule, null);
  const found: number[] = [];
  for (let at = ticks.next(BEGIN - 1); at <= END; at = ticks.next(at)) found.push(at);
  return found;
}

test("several schedules have every tick of any of them, once", () => {
  fc.assert(
    fc.property(several, (schedule) => {
      const union = [...new Set(schedule.of.flatMap(listed))].sort((a, b) => a - b);
      expect(listed(schedule)).toEqual(union);
    }),
    { numRuns: 200 },
  );
});

test("previous is the inverse of next", () => {
  fc.assert(
    fc.property(fc.oneof(dates, several), fc.integer({ min: BEGIN, max: END }), (schedule, moment) => {
      const ticks = ticksOf(schedule, null);
      const until = listed(schedule).filter((tick) => tick <= moment);
      const previous = ticks.previous(moment);
      if (until.length > 0) expect(previous).toBe(until.at(-1));
      else expect(previous).toBeLessThan(BEGIN);
      expect(ticks.next(moment)).toBeGreaterThan(moment);
    }),
    { numRuns: 200 },
  );
});

describe("explicit dates", () => {
  const schedule: ScheduleManifest = {
    kind: "dates",
    dates: ["2027-01-04T08:00:00.000Z", "2027-02-01T08:00:00.000Z", "2027-03-01T08:00:00.000Z"],
  };
  const at = (text: string) => Date.parse(text);
  const open = { start: null, end: null, catchup: false };
  const next = (now: string, window: Partial<typeof open> & object = {}, last: DueRun | null = null) => {
    const run = nextRun(schedule, { ...open, ...window }, { last, now: at(now) });
    return run && new Date(run.logicalDate).toISOString().slice(0, 10);
  };
  const run = (text: string): DueRun => {
    const instant = at(`${text}T08:00:00Z`);
    return { logicalDate: instant, intervalStart: instant, intervalEnd: instant, runAfter: instant };
  };

  test("plans the first date before it, then each following date, then none", () => {
    expect(next("2026-06-01")).toBe("2027-01-04");
    expect(next("2027-01-04T08:00:00Z", {}, run("2027-01-04"))).toBe("2027-02-01");
    expect(next("2027-03-01T08:00:00Z", {}, run("2027-03-01"))).toBeNull();
  });

  test("plans only the newest missed date, or with catchup all of them", () => {
    expect(next("2027-02-15")).toBe("2027-02-01");
    expect(next("2028-01-01", {}, run("2027-01-04"))).toBe("2027-03-01");
    const window = { start: at("2027-01-01") as never, catchup: true };
    expect(next("2028-01-01", window)).toBe("2027-01-04");
    expect(next("2028-01-01", window, run("2027-01-04"))).toBe("2027-02-01");
  });

  test("plans no date before the start or after the end", () => {
    expect(next("2026-06-01", { start: at("2027-01-05") as never })).toBe("2027-02-01");
    expect(next("2026-06-01", { end: at("2027-01-01") as never })).toBeNull();
    expect(next("2027-02-01T08:00:00Z", { end: at("2027-02-15") as never }, run("2027-02-01"))).toBeNull();
  });
});

test.each([
  [{ kind: "dates", dates: [] }, "DATES_INVALID"],
  [{ kind: "dates", dates: ["soon"] }, "DATES_INVALID"],
  [{ kind: "dates", dates: ["2027-01-02T00:00:00.000Z", "2027-01-01T00:00:00.000Z"] }, "DATES_INVALID"],
  [{ kind: "dates", dates: ["2027-01-02T00:00:00.000Z", "2027-01-02T00:00:00.000Z"] }, "DATES_INVALID"],
  [{ kind: "several", of: [] }, "SCHEDULES_INVALID"],
  [{ kind: "several", of: [{ kind: "once" }] }, "SCHEDULES_INVALID"],
  [{ kind: "several", of: [{ kind: "interval", everyMs: 5, style: "interval" }] }, "SCHEDULES_INVALID"],
  [{ kind: "several", of: [{ kind: "interval", everyMs: 0, style: "trigger" }] }, "INTERVAL_INVALID"],
])("rejects the invalid schedule %j", (schedule, code) => {
  expect(() => validateSchedule(schedule as unknown as ScheduleManifest)).toThrow(
    expect.objectContaining({ code }),
  );
});

describe("jitter", () => {
  test("is deterministic, within its bounds, and evenly spread", () => {
    const bins = new Array<number>(10).fill(0);
    for (let i = 0; i < 10_000; i++) {
      const jitter = jitterOf(`dag_${i}`, BEGIN, 30_000);
      expect(jitter).toBe(jitterOf(`dag_${i}`, BEGIN, 30_000));
      expect(jitter).toBeGreaterThanOrEqual(0);
      expect(jitter).toBeLessThanOrEqual(30_000);
      const bin = Math.min(Math.floor(jitter / 3_000), 9);
      bins[bin] = (bins[bin] ?? 0) + 1;
    }
    for (const count of bins) expect(count).toBeGreaterThan(800);
  });

  test("differs from date to date, and is 0 without a jitter option", () => {
    const found = new Set(
      Array.from({ length: 100 }, (_, day) => jitterOf("x", BEGIN + day * DAY, 3_600_000)),
    );
    expect(found.size).toBeGreaterThan(95);
    expect(jitterOf("x", BEGIN, 0)).toBe(0);
  });

  test("skips no tick, even if the jitter is longer than the distance of two ticks", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("trigger" as const, "interval" as const),
        fc.integer({ min: 1, max: 120 }),
        fc.integer({ min: 0, max: 300 }),
        (style, everySeconds, jitterSeconds) => {
          const schedule = { kind: "interval", everyMs: everySeconds * 1_000, style } as const;
          const slackMs = jitterSeconds * 1_000;
          let now = BEGIN;
          let last: DueRun | null = null;
          for (let i = 0; i < 50; i++) {
            const run: DueRun | null = nextRun(
              schedule,
              { start: BEGIN, end: null, catchup: false },
              { last, now, slackMs },
            );
            if (!run) throw new Error("no run");
            expect(run.logicalDate).toBe(BEGIN + i * schedule.everyMs);
            // The run is created the moment it is due.
            now = Math.max(now, run.runAfter + jitterOf("x", run.logicalDate, slackMs));
            last = run;
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import {
  actionFor,
  type BackfillRange,
  backfillDates,
  backfillProgress,
  backfillRange,
  type DateAction,
  listedRun,
  listedSchedule,
  planDates,
  type Reprocess,
  remainingMs,
} from "./backfill.ts";
import type { TimeSchedule } from "./ticks.ts";
import { nextRun } from "./timetable.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const BEGIN = Date.UTC(2024, 0, 1);

const schedules: fc.Arbitrary<TimeSchedule> = fc.oneof(
  fc.record({
    kind: fc.constant("cron" as const),
    expression: fc.constantFrom("0 2 * * *", "30 */6 * * *", "0 0 * * 1", "15 1,13 1-10 * *"),
    timezone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York"),
    style: fc.constantFrom("trigger" as const, "interval" as const),
  }),
  fc.record({
    kind: fc.constant("interval" as const),
    everyMs: fc.constantFrom(HOUR, 7 * HOUR, DAY),
    style: fc.constantFrom("trigger" as const, "interval" as const),
  }),
  fc
    .uniqueArray(fc.integer({ min: 0, max: 220 }), { minLength: 1, maxLength: 60 })
    .map((days) => ({ kind: "dates" as const, dates: isoDays(days) })),
  fc.constant({
    kind: "several" as const,
    of: [
      { kind: "cron", expression: "0 9 * * 1-5", timezone: "Asia/Tokyo", style: "trigger" } as const,
      { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin", style: "trigger" } as const,
      { kind: "dates", dates: isoDays([3, 50, 51, 120]) } as const,
    ],
  }),
);

function isoDays(days: readonly number[]): string[] {
  return [...days].sort((a, b) => a - b).map((day) => new Date(BEGIN + day * DAY).toISOString());
}

const ranges: fc.Arbitrary<BackfillRange> = fc
  .record({
    from: fc.integer({ min: 0, max: 200 * DAY }),
    span: fc.integer({ min: 0, max: 20 * DAY }),
    until: fc.integer({ min: -2 * DAY, max: 5 * DAY }),
    anchor: fc.option(fc.integer({ min: -10 * DAY, max: 210 * DAY })),
    isReverse: fc.boolean(),
  })
  .map(({ from, span, until, anchor, isReverse }) => ({
    from: BEGIN + from,
    to: BEGIN + from + span,
    until: BEGIN + from + span + until,
    anchor: anchor === null ? null : BEGIN + anchor,
    isReverse,
  }));

/** The runs that a scheduler with catchup creates, one after the other, beginning some time before the range. */
function scheduled(schedule: TimeSchedule, range: BackfillRange): number[] {
  const every = schedule.kind === "interval" ? schedule.everyMs : 1;
  const anchor = range.anchor ?? 0;
  // A start on the DAG's own ticks, so that interval ticks count from the same moment.
  const start = anchor + Math.floor((range.from - 40 * DAY - anchor) / every) * every;
  const dates: number[] = [];
  let run = nextRun(schedule, { start, end: range.to, catchup: true }, { last: null, now: range.until });
  while (run !== null && run.runAfter <= range.until) {
    if (run.logicalDate >= range.from) dates.push(run.logicalDate);
    run = nextRun(schedule, { start, end: range.to, catchup: true }, { last: run, now: range.until });
  }
  return dates;
}

test("a backfill has exactly the dates for which a scheduler with catchup creates runs, in both directions", () => {
  fc.assert(
    fc.property(schedules, ranges, (schedule, range) => {
      const dates = [...backfillDates(schedule, range)].map((run) => run.logicalDate);
      const expected = scheduled(schedule, range);
      expect(dates).toEqual(range.isReverse ? expected.reverse() : expected);
    }),
    { numRuns: 300 },
  );
});

test("a backfill can resume at any of its dates", () => {
  fc.assert(
    fc.property(schedules, ranges, fc.nat(), (schedule, range, n) => {
      const all = [...backfillDates(schedule, range)];
      const first = all[n % Math.max(all.length, 1)];
      if (!first) return;
      expect([...backfillDates(schedule, range, first.logicalDate)]).toEqual(all.slice(all.indexOf(first)));
    }),
    { numRuns: 200 },
  );
});

const STATES = ["queued", "running", "success", "failed"] as const;

test("planDates handles dates in order, creates no more runs than there is room for, and stops only for lack of room", () => {
  const step = fc.record({
    states: fc.array(fc.option(fc.constantFrom(...STATES)), { maxLength: 40 }),
    room: fc.integer({ min: 0, max: 10 }),
    reprocess: fc.constantFrom<Reprocess>("none", "failed", "completed"),
  });
  fc.assert(
    fc.property(step, ({ states, room, reprocess }) => {
      const dates = states.map((_, n) => ({ logicalDate: n, intervalStart: n, intervalEnd: n, runAfter: n }));
      const existing = new Map(states.flatMap((state, id) => (state === null ? [] : [[id, { id, state }]])));
      const planned = planDates(dates, existing, { reprocess, room });
      const own = planned.filter(({ action }) => action === "created" || action === "cleared");
      expect(planned.map(({ run }) => run)).toEqual(dates.slice(0, planned.length));
      expect(own.length).toBeLessThanOrEqual(room);
      for (const { action, existing: other } of planned) {
        if (action === "created") expect(other).toBeUndefined();
        // A run that another scheduler drives is never cleared.
        if (action === "cleared") expect(["success", "failed"]).toContain(other?.state);
        expect(action === "awaited").toBe(other?.state === "queued" || other?.state === "running");
      }
      const next = states[planned.length];
      if (planned.length < dates.length) {
        expect(own.length).toBe(room);
        expect(["created", "cleared"]).toContain(
          actionFor(next == null ? undefined : { id: 0, state: next }, reprocess),
        );
      }
    }),
  );
});

test.each<[Reprocess, Record<(typeof STATES)[number], DateAction>]>([
  ["none", { queued: "awaited", running: "awaited", success: "kept", failed: "kept" }],
  ["failed", { queued: "awaited", running: "awaited", success: "kept", failed: "cleared" }],
  ["completed", { queued: "awaited", running: "awaited", success: "cleared", failed: "cleared" }],
])("reprocess %s", (reprocess, expected) => {
  expect(actionFor(undefined, reprocess)).toBe("created");
  for (const state of STATES) expect(actionFor({ id: 1, state }, reprocess)).toBe(expected[state]);
});

describe("progress", () => {
  const counts = fc.record({
    left: fc.nat(20),
    tasksPerRun: fc.integer({ min: 1, max: 10 }),
    dates: fc.array(
      fc.record({
        action: fc.constantFrom<DateAction>("created", "cleared", "kept", "awaited"),
        state: fc.constantFrom(...STATES, "gone"),
        runs: fc.integer({ min: 1, max: 20 }),
      }),
    ),
    tasks: fc.array(
      fc.record({
        state: fc.constantFrom(
          "success",
          "failed",
          "skipped",
          "upstream_failed",
          "removed",
          "running",
          "none",
        ),
        tasks: fc.nat(50),
      }),
    ),
  });

  it("adds up, and reaches 100 percent exactly when every run has ended", () => {
    fc.assert(
      fc.property(counts, ({ left, ...counted }) => {
        const totalRuns = left + counted.dates.reduce((sum, date) => sum + date.runs, 0);
        const { runs, tasks, percent } = backfillProgress({ ...counted, totalRuns });
        for (const tally of [runs, tasks]) {
          expect(tally.finished).toBe(tally.succeeded + tally.skipped + tally.failed);
          expect(tally.finished + tally.running).toBeLessThanOrEqual(tally.total);
        }
        expect(runs.total).toBe(totalRuns);
        expect(percent).toBeGreaterThanOrEqual(0);
        expect(percent === 100).toBe(runs.finished === runs.total);
      }),
    );
  });

  it("estimates the remaining time from the pace of the last runs", () => {
    expect(remainingMs({ endedAt: [], since: 0, now: 10_000, runsLeft: 5 })).toBeNull();
    expect(remainingMs({ endedAt: [10_000], since: 0, now: 10_000, runsLeft: 5 })).toBe(50_000);
    expect(remainingMs({ endedAt: [10_000], since: 0, now: 10_000, runsLeft: 0 })).toBe(0);
    // No run has ended for much longer than usual: the remaining time is unknown.
    expect(remainingMs({ endedAt: [10_000], since: 0, now: 59_000, runsLeft: 5 })).toBe(295_000);
    expect(remainingMs({ endedAt: [10_000], since: 0, now: 61_000, runsLeft: 5 })).toBeNull();
    expect(remainingMs({ endedAt: [300, 200, 100], since: 0, now: 9_000, runsLeft: 1 })).toBe(4_450);
    expect(remainingMs({ endedAt: [300, 200, 100], since: 0, now: 11_000, runsLeft: 1 })).toBeNull();
    // Slow at first, then one run per second.
    const endedAt = [103_000, 102_000, 101_000, 100_000];
    expect(remainingMs({ endedAt, since: 0, now: 103_000, runsLeft: 7 })).toBe(7_000);
  });
});

describe("a range", () => {
  const request = { from: BEGIN, to: BEGIN + DAY, now: BEGIN + 9 * DAY, isReverse: false };
  const daily = { kind: "interval", everyMs: DAY, style: "trigger" } as const;
  const dag = (task: object, schedule: object = daily) =>
    dagManifest([taskManifest("load", task)], { dagId: "sales", schedule: schedule as never });

  it("rejects a DAG without a time-based schedule, and a range that ends before it starts", () => {
    expect(backfillRange(dag({}), request).range).toMatchObject({ from: BEGIN, until: request.now });
    expect(() => backfillRange(dag({}, { kind: "continuous" }), request)).toThrow(
      /"sales" has no time-based schedule/,
    );
    expect(() => backfillRange(dag({}), { ...request, to: BEGIN - 1 })).toThrow(/ends before it starts/);
  });

  it("runs backwards only if no task depends on past runs", () => {
    expect(backfillRange(dag({}), { ...request, isReverse: true }).range.isReverse).toBe(true);
    for (const task of [{ dependsOnPast: true }, { waitForDownstream: true }])
      expect(() => backfillRange(dag(task), { ...request, isReverse: true })).toThrow(
        /"load" depends on the previous run/,
      );
  });
});

test("a listed schedule keeps its runs in the order in which they are created", () => {
  const instant = fc.integer({ min: 0, max: 1_000 });
  const moment = instant.map((at) => ({ logicalDate: at, intervalStart: at, intervalEnd: at, runAfter: at }));
  const period = fc.record({
    logicalDate: instant,
    intervalStart: instant,
    intervalEnd: instant,
    runAfter: instant,
  });
  fc.assert(
    fc.property(fc.array(fc.oneof(moment, period)), fc.boolean(), (runs, isReverse) => {
      const kept = JSON.parse(JSON.stringify(listedSchedule(runs, isReverse))) as ReturnType<
        typeof listedSchedule
      >;
      expect(kept.dues.map(listedRun)).toEqual(isReverse ? runs.toReversed() : runs);
    }),
  );
});

test.each([
  ["none", {}, /it has no schedule/],
  ["once", {}, /it runs once/],
  ["continuous", {}, /the end of the previous run/],
  ["signal", { condition: {}, gather: { time: null } }, /signals or assets/],
  ["trigger", {}, /events of a trigger/],
])("a backfill of a schedule of kind %s is rejected with the reason", (kind, facts, why) => {
  const dag = dagManifest([taskManifest("t")], { schedule: { kind, ...facts } as never });
  const request = { from: 0, to: DAY, now: DAY, isReverse: false };
  expect(() => backfillRange(dag, request)).toThrow(why);
});

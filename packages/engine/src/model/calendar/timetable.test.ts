import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DueRun, dueRun, type LastRun, nextRun, type RunWindow, validateSchedule } from "./timetable.ts";

const at = (text: string) => Date.parse(text);
const daily = (style: "trigger" | "interval"): ScheduleManifest => {
  return { kind: "cron", expression: "0 2 * * *", timezone: "UTC", style };
};
const open: RunWindow = { start: null, end: null, catchup: false };

/** Logical date, interval end and due time as short texts. */
function show(run: DueRun | null): string | null {
  if (!run) return null;
  expect(run.intervalStart).toBe(run.logicalDate);
  return [run.logicalDate, run.intervalEnd, run.runAfter]
    .map((ms) => new Date(ms).toISOString().slice(0, 16))
    .join(" ");
}

const next = (
  schedule: ScheduleManifest,
  window: Partial<RunWindow>,
  now: string,
  last: LastRun | null = null,
) => show(nextRun(schedule, { ...open, ...window }, { last, now: at(now) }));

describe("cron, style trigger", () => {
  test("creates a run for every tick since start with catchup", () => {
    const window = { start: at("2026-01-01T00:00Z"), catchup: true };
    expect(next(daily("trigger"), window, "2026-02-01T00:00Z")).toBe(
      "2026-01-01T02:00 2026-01-01T02:00 2026-01-01T02:00",
    );
    const last = { logicalDate: at("2026-01-01T02:00Z"), intervalEnd: at("2026-01-01T02:00Z") };
    expect(next(daily("trigger"), window, "2026-02-01T00:00Z", last)).toMatch(/^2026-01-02T02:00/);
  });

  test("includes a tick exactly at start", () => {
    const window = { start: at("2026-01-01T02:00Z"), catchup: true };
    expect(next(daily("trigger"), window, "2026-02-01T00:00Z")).toMatch(/^2026-01-01T02:00/);
  });

  test("without catchup, plans the newest due tick, then the next future tick", () => {
    const window = { start: at("2026-01-01T00:00Z") };
    expect(next(daily("trigger"), window, "2026-02-01T12:00Z")).toMatch(/^2026-02-01T02:00/);
    expect(next(daily("trigger"), {}, "2026-02-01T12:00Z")).toMatch(/^2026-02-01T02:00/);
    const last = { logicalDate: at("2026-02-01T02:00Z"), intervalEnd: at("2026-02-01T02:00Z") };
    expect(next(daily("trigger"), window, "2026-02-01T12:00Z", last)).toMatch(/^2026-02-02T02:00/);
  });

  test("plans no tick before start or after end", () => {
    expect(next(daily("trigger"), { start: at("2027-01-01T00:00Z") }, "2026-02-01T12:00Z")).toMatch(
      /^2027-01-01T02:00/,
    );
    expect(next(daily("trigger"), { end: at("2026-01-15T00:00Z") }, "2026-02-01T12:00Z")).toBeNull();
    expect(next(daily("trigger"), { end: at("2026-02-01T02:00Z") }, "2026-02-01T12:00Z")).toMatch(
      /^2026-02-01T02:00/,
    );
  });
});

describe("cron, style interval", () => {
  test("makes a run due at the end of its interval", () => {
    const window = { start: at("2026-01-01T00:00Z"), catchup: true };
    expect(next(daily("interval"), window, "2026-02-01T00:00Z")).toBe(
      "2026-01-01T02:00 2026-01-02T02:00 2026-01-02T02:00",
    );
    const last = { logicalDate: at("2026-01-01T02:00Z"), intervalEnd: at("2026-01-02T02:00Z") };
    expect(next(daily("interval"), window, "2026-02-01T00:00Z", last)).toMatch(
      /^2026-01-02T02:00 2026-01-03T02:00/,
    );
  });

  test("without catchup, plans the newest complete interval, then the current one", () => {
    expect(next(daily("interval"), {}, "2026-02-05T12:00Z")).toMatch(/^2026-02-04T02:00 2026-02-05T02:00/);
    const last = { logicalDate: at("2026-02-04T02:00Z"), intervalEnd: at("2026-02-05T02:00Z") };
    expect(next(daily("interval"), {}, "2026-02-05T12:00Z", last)).toMatch(
      /^2026-02-05T02:00 2026-02-06T02:00/,
    );
  });

  test("creates adjacent intervals of 23 or 25 hours across a clock change", () => {
    const schedule = {
      kind: "cron",
      expression: "0 0 * * *",
      timezone: "Europe/Berlin",
      style: "interval",
    } as const;
    const window = { start: at("2026-03-27T23:00Z"), end: null, catchup: true };
    const hours: number[] = [];
    let last: DueRun | null = null;
    for (let i = 0; i < 3; i++) {
      const run: DueRun = nextRun(schedule, window, { last, now: at("2027-01-01T00:00Z") })!;
      if (last) expect(run.intervalStart).toBe(last.intervalEnd);
      hours.push((run.intervalEnd - run.intervalStart) / 3_600_000);
      last = run;
    }
    expect(hours).toEqual([24, 23, 24]);
  });
});

describe("interval", () => {
  const every = (style: "trigger" | "interval"): ScheduleManifest => ({
    kind: "interval",
    everyMs: 600_000,
    style,
  });

  test("counts ticks from start, or from the epoch", () => {
    const window = { start: at("2026-01-01T00:03Z"), catchup: true };
    expect(next(every("trigger"), window, "2026-01-01T05:00Z")).toMatch(/^2026-01-01T00:03/);
    expect(next(every("trigger"), { start: window.start }, "2026-01-01T05:00Z")).toMatch(/^2026-01-01T04:53/);
    expect(next(every("trigger"), {}, "2026-01-01T05:07Z")).toMatch(/^2026-01-01T05:00/);
    expect(next(every("interval"), {}, "2026-01-01T05:07Z")).toBe(
      "2026-01-01T04:50 2026-01-01T05:00 2026-01-01T05:00",
    );
  });

  test("rejects an invalid interval and an invalid cron expression", () => {
    for (const everyMs of [0, -5, 1.5, Number.NaN]) {
      expect(() => validateSchedule({ kind: "interval", everyMs, style: "trigger" })).toThrow(
        "positive whole number",
      );
    }
    expect(() => validateSchedule(every("trigger"))).not.toThrow();
    expect(() => validateSchedule({ ...daily("trigger"), expression: "daily" } as ScheduleManifest)).toThrow(
      "1 field",
    );
  });
});

test("kind none plans no run; kind once plans one run, at start or now", () => {
  expect(next({ kind: "none" }, {}, "2026-01-01T00:00Z")).toBeNull();
  expect(next({ kind: "once" }, {}, "2026-01-01T00:00Z")).toMatch(/^2026-01-01T00:00/);
  expect(next({ kind: "once" }, { start: at("2026-05-01T00:00Z") }, "2026-01-01T00:00Z")).toMatch(
    /^2026-05-01T00:00/,
  );
  expect(next({ kind: "once" }, {}, "2026-01-01T00:00Z", { logicalDate: 5, intervalEnd: 5 })).toBeNull();
});

test("continuous: each run begins where the previous interval ended, with a new logical date", () => {
  const schedule = { kind: "continuous" } as const;
  const first = nextRun(schedule, open, { last: null, now: 1_000 })!;
  expect(first.logicalDate).toBe(1_000);
  const second = nextRun(schedule, open, { last: first, now: 9_000 })!;
  expect(second).toEqual({
    logicalDate: first.intervalEnd,
    intervalStart: first.intervalEnd,
    intervalEnd: 9_000,
    runAfter: 9_000,
  });
  const third = nextRun(schedule, open, { last: second, now: 9_000 })!;
  const fourth = nextRun(schedule, open, { last: third, now: 9_000 })!;
  expect(new Set([first, second, third, fourth].map((run) => run.logicalDate)).size).toBe(4);
});

const style = fc.constantFrom("trigger" as const, "interval" as const);
const anySchedule = fc.oneof(
  fc.record({
    kind: fc.constant("cron" as const),
    expression: fc.constantFrom("*/10 * * * *", "0 2 * * *", "30 2 * * MON", "0 */6 1 * *"),
    timezone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York"),
    style,
  }),
  fc.record({ kind: fc.constant("interval" as const), everyMs: fc.integer({ min: 1, max: 1e9 }), style }),
);
const anyInstant = fc.integer({ min: at("2025-01-01T00:00Z"), max: at("2027-01-01T00:00Z") });
const anyWindow = fc.record({ start: fc.option(anyInstant), end: fc.option(anyInstant) });
const someMoments = fc
  .array(anyInstant, { minLength: 1, maxLength: 8 })
  .map((moments) => moments.sort((a, b) => a - b));

test("without catchup, a scheduler creates at most one run per check: the newest due one", () => {
  fc.assert(
    fc.property(anySchedule, anyWindow, someMoments, (schedule, limits, moments) => {
      const window = { ...limits, catchup: false };
      let plan: DueRun | null = null;
      let last: DueRun | null = null;
      for (const [i, now] of moments.entries()) {
        plan ??= i === 0 ? nextRun(schedule, window, { last, now }) : plan;
        if (plan === null || plan.runAfter > now) continue;
        const run: DueRun = dueRun(schedule, window, { planned: plan, now });
        expect(run.runAfter).toBeLessThanOrEqual(now);
        if (last) expect(run.logicalDate).toBeGreaterThan(last.logicalDate);
        if (limits.end !== null) expect(run.logicalDate).toBeLessThanOrEqual(limits.end);
        last = run;
        plan = nextRun(schedule, window, { last, now });
        // No other run is due, so a second check creates none.
        if (plan !== null) expect(plan.runAfter).toBeGreaterThan(now);
      }
    }),
    { numRuns: 500 },
  );
});

test("with catchup, the planned run is created at any delay", () => {
  fc.assert(
    fc.property(anySchedule, anyInstant, anyInstant, (schedule, start, now) => {
      const window = { start, end: null, catchup: true };
      const planned = nextRun(schedule, window, { last: null, now })!;
      expect(dueRun(schedule, window, { planned, now })).toBe(planned);
    }),
  );
});

describe("a missed planned run without catchup", () => {
  const planned = nextRun(daily("trigger"), open, { last: null, now: at("2026-01-10T02:00Z") })!;
  const due = (now: string, options: { window?: Partial<RunWindow>; slackMs?: number } = {}) =>
    show(
      dueRun(
        daily("trigger"),
        { ...open, ...options.window },
        { planned, now: at(now), slackMs: options.slackMs ?? 0 },
      ),
    );

  test("is replaced by the newest due run", () => {
    expect(due("2026-01-10T02:00Z")).toMatch(/^2026-01-10T02:00/);
    expect(due("2026-01-11T01:59Z")).toMatch(/^2026-01-10T02:00/);
    expect(due("2026-01-13T12:00Z")).toMatch(/^2026-01-13T02:00/);
  });

  test("is replaced by the last run before the end", () => {
    expect(due("2026-01-20T12:00Z", { window: { end: at("2026-01-12T12:00Z") } })).toMatch(
      /^2026-01-12T02:00/,
    );
    expect(due("2026-01-20T12:00Z", { window: { end: at("2026-01-10T02:00Z") } })).toMatch(
      /^2026-01-10T02:00/,
    );
  });

  test("is kept within the jitter, which may be longer than the distance of two runs", () => {
    const slackMs = 3 * 86_400_000;
    expect(due("2026-01-12T12:00Z", { slackMs })).toMatch(/^2026-01-10T02:00/);
    expect(due("2026-01-14T12:00Z", { slackMs })).toMatch(/^2026-01-14T02:00/);
  });
});

test("runs of any schedule never repeat and stop at the end", () => {
  const window = fc.record({
    start: fc.option(anyInstant),
    end: fc.option(anyInstant),
    catchup: fc.boolean(),
  });
  fc.assert(
    fc.property(anySchedule, window, someMoments, (plan, limits, moments) => {
      let last: DueRun | null = null;
      for (const now of moments) {
        const run = nextRun(plan, limits, { last, now });
        if (!run) continue;
        if (last) expect(run.logicalDate).toBeGreaterThan(last.logicalDate);
        if (limits.start !== null) expect(run.logicalDate).toBeGreaterThanOrEqual(limits.start);
        if (limits.end !== null) expect(run.logicalDate).toBeLessThanOrEqual(limits.end);
        expect(run.runAfter).toBe(run.intervalEnd);
        // Only a due run is created; a future run is planned again later.
        if (run.runAfter <= now) last = run;
      }
    }),
    { numRuns: 500 },
  );
});

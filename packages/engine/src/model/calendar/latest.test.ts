import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isLatestRun, type LatestFacts } from "./latest.ts";
import { type DueRun, nextRun } from "./timetable.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const at = (iso: string) => Date.parse(iso);
const midnight = (style: "interval" | "trigger"): ScheduleManifest => ({
  kind: "cron",
  expression: "0 0 * * *",
  timezone: "UTC",
  style,
});

function facts(changes: Partial<LatestFacts> = {}): LatestFacts {
  return {
    dagId: "d",
    runType: "scheduled",
    logicalDate: at("2027-01-04T00:00:00Z"),
    intervalEnd: at("2027-01-05T00:00:00Z"),
    schedule: midnight("interval"),
    window: { start: null, end: null, catchup: false },
    jitterMs: 0,
    hasLater: false,
    next: null,
    ...changes,
  };
}

describe("isLatestRun", () => {
  it("is true for the last period that has ended", () => {
    const run = facts();
    expect(isLatestRun(run, at("2027-01-05T00:00:01Z"))).toBe(true);
    expect(isLatestRun(run, at("2027-01-05T23:59:59Z"))).toBe(true);
    expect(isLatestRun(run, at("2027-01-06T00:00:00Z"))).toBe(false);
    expect(isLatestRun({ ...run, runType: "backfill" }, at("2027-01-06T00:00:00Z"))).toBe(false);
  });

  it("is true for the last moment of a schedule with empty periods", () => {
    const moment = at("2027-01-04T00:00:00Z");
    const run = facts({ schedule: midnight("trigger"), intervalEnd: moment });
    expect(isLatestRun(run, at("2027-01-04T23:59:59Z"))).toBe(true);
    expect(isLatestRun(run, at("2027-01-05T00:00:00Z"))).toBe(false);
    const dates = { kind: "dates", dates: ["2027-01-04T00:00:00Z", "2027-03-01T00:00:00Z"] } as const;
    expect(isLatestRun({ ...run, schedule: dates }, at("2027-02-01T00:00:00Z"))).toBe(true);
    expect(isLatestRun({ ...run, schedule: dates }, at("2027-03-01T00:00:00Z"))).toBe(false);
  });

  it("stays true for the last run before the end of the DAG", () => {
    const run = facts({ window: { start: null, end: at("2027-01-04T12:00:00Z"), catchup: true } });
    expect(isLatestRun(run, at("2030-01-01T00:00:00Z"))).toBe(true);
  });

  it("is true for any run that the schedule has not created", () => {
    for (const runType of ["manual", "operator_triggered", "asset_triggered", "signal_triggered"])
      expect(isLatestRun(facts({ runType }), at("2030-01-01T00:00:00Z"))).toBe(true);
    expect(isLatestRun(facts({ logicalDate: null }), at("2030-01-01T00:00:00Z"))).toBe(true);
  });

  it("for a timetable, depends on later runs and on a planned run that is due", () => {
    const run = facts({ schedule: { kind: "timetable", name: "Own", args: null } });
    const now = at("2027-01-10T00:00:00Z");
    const planned = (logicalDate: number, runAfter: number) => ({ ...run, next: { logicalDate, runAfter } });
    expect(isLatestRun(run, now)).toBe(true);
    expect(isLatestRun({ ...run, hasLater: true }, now)).toBe(false);
    expect(isLatestRun(planned(now - DAY, now + 1), now)).toBe(true);
    expect(isLatestRun(planned(now - DAY, now), now)).toBe(false);
    // A backfill run that is ahead of the planned run.
    expect(isLatestRun(planned((run.logicalDate ?? 0) - DAY, now), now)).toBe(true);
  });

  it("for a timetable's backfill, is true only if its period reaches the planned run", () => {
    const schedule = { kind: "timetable", name: "Own", args: null } as const;
    const run = facts({ schedule, runType: "backfill" });
    const now = at("2027-01-05T12:00:00Z");
    const planned = (logicalDate: number) => ({ ...run, next: { logicalDate, runAfter: now + DAY } });
    expect(isLatestRun(planned(at("2027-01-05T00:00:00Z")), now)).toBe(true);
    expect(isLatestRun(planned(at("2027-02-05T00:00:00Z")), now)).toBe(false);
    expect(isLatestRun({ ...planned(at("2027-02-05T00:00:00Z")), runType: "scheduled" }, now)).toBe(true);
    expect(isLatestRun({ ...planned(at("2027-01-05T00:00:00Z")), intervalEnd: null }, now)).toBe(false);
  });

  it("is true for exactly one of all due runs, and jitter only delays the next one", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.constantFrom("interval" as const, "trigger" as const),
        fc.integer({ min: 0, max: HOUR }),
        fc.integer({ min: 10, max: 400 }),
        (hours, style, jitterMs, days) => {
          const schedule = { kind: "interval", everyMs: hours * HOUR, style } as const;
          const now = at("2027-01-01T00:00:00Z") + days * HOUR;
          const window = { start: at("2027-01-01T00:00:00Z"), end: null, catchup: true };
          const due: DueRun[] = [];
          let last = nextRun(schedule, window, { last: null, now });
          while (last !== null && last.runAfter <= now) {
            due.push(last);
            last = nextRun(schedule, window, { last, now });
          }
          const of = (run: DueRun, jitter: number) =>
            isLatestRun(facts({ ...run, schedule, window, jitterMs: jitter }), now);
          expect(due.map((run) => of(run, 0))).toEqual(due.map((_, i) => i === due.length - 1));
          for (const run of due) if (of(run, 0)) expect(of(run, jitterMs)).toBe(true);
        },
      ),
    );
  });
});

import type { DagManifest, ScheduleManifest } from "@tradewind/sdk/manifest";
import { expect, it } from "vitest";
import { dagManifest } from "../../../test/reference/manifests.ts";
import { upcomingRuns } from "./upcoming-runs.ts";

const NIGHTLY: ScheduleManifest = {
  kind: "cron",
  expression: "0 2 * * 1-5",
  timezone: "Europe/Berlin",
  style: "trigger",
};
/** A Thursday. */
const NOW = Date.parse("2026-03-26T12:00:00Z");

function upcoming(schedule: ScheduleManifest, plannedAt: string | null, more: Partial<DagManifest> = {}) {
  const at = plannedAt === null ? null : Date.parse(plannedAt);
  const planned = at === null ? null : { logicalDate: at, intervalStart: at, intervalEnd: at, runAfter: at };
  const runs = upcomingRuns(dagManifest([], { schedule, ...more }), { planned, now: NOW, count: 4 });
  return runs.map(({ runAfter }) => new Date(runAfter).toISOString());
}

it("follows the schedule from the planned run, across a clock change", () => {
  expect(upcoming(NIGHTLY, "2026-03-27T01:00:00Z")).toEqual([
    "2026-03-27T01:00:00.000Z",
    "2026-03-30T00:00:00.000Z",
    "2026-03-31T00:00:00.000Z",
    "2026-04-01T00:00:00.000Z",
  ]);
});

it("skips dates that a paused DAG has missed, unless it catches up", () => {
  const missed = "2026-03-20T01:00:00Z";
  expect(upcoming(NIGHTLY, missed).slice(0, 2)).toEqual([
    "2026-03-26T01:00:00.000Z",
    "2026-03-27T01:00:00.000Z",
  ]);
  const caughtUp = upcoming(NIGHTLY, missed, { catchup: true, start: "2026-03-01T00:00:00Z" });
  expect(caughtUp.slice(0, 2)).toEqual(["2026-03-20T01:00:00.000Z", "2026-03-23T01:00:00.000Z"]);
});

it("lists intervals with their ends as due times", () => {
  const daily: ScheduleManifest = { kind: "interval", everyMs: 86_400_000, style: "interval" };
  const start = Date.parse("2026-03-26T00:00:00Z");
  const planned = {
    logicalDate: start,
    intervalStart: start,
    intervalEnd: start + 86_400_000,
    runAfter: start + 86_400_000,
  };
  const runs = upcomingRuns(dagManifest([], { schedule: daily }), { planned, now: NOW, count: 2 });
  expect(runs.map(({ logicalDate, runAfter }) => [logicalDate - start, runAfter - start])).toEqual([
    [0, 86_400_000],
    [86_400_000, 2 * 86_400_000],
  ]);
});

it("stops at the end of the DAG, and lists at most the planned run of a schedule without ticks", () => {
  const end = "2026-03-30T12:00:00Z";
  expect(upcoming(NIGHTLY, "2026-03-27T01:00:00Z", { end })).toHaveLength(2);
  expect(upcoming({ kind: "once" }, "2026-03-27T01:00:00Z")).toHaveLength(1);
  expect(upcoming({ kind: "none" }, null)).toEqual([]);
});

it("adds the jitter of each date", () => {
  const [first, second] = upcoming(NIGHTLY, "2026-03-27T01:00:00Z", { jitterMs: 3_600_000 });
  expect(first).toBe("2026-03-27T01:00:00.000Z");
  expect(second).toMatch(/^2026-03-30T00:/);
  expect(second).not.toBe("2026-03-30T00:00:00.000Z");
});

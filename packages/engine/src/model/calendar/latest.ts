/**
 * Whether a run is the latest run of its schedule. A run that the schedule did not create always counts as the latest: a
 * user or an event asked for this run specifically. Of scheduled runs and backfill runs, only the run after which no other
 * has fallen due is the latest. If only user code knows the dates, a backfill run is not the latest unless its interval
 * reaches the planned run: dates without a run may lie in between.
 */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { isTimeSchedule } from "./ticks.ts";
import { jitterOf, nextRun, type RunWindow } from "./timetable.ts";

/** A run and its DAG; instants in milliseconds. */
export interface LatestFacts {
  readonly dagId: string;
  readonly runType: string;
  readonly logicalDate: number | null;
  readonly intervalEnd: number | null;
  /** The DAG's current schedule, which would create a later run. */
  readonly schedule: ScheduleManifest;
  readonly window: RunWindow;
  readonly jitterMs: number;
  /** The schedule has already created a run with a later date. */
  readonly hasLater: boolean;
  /** The planned next run; null: none is planned. */
  readonly next: { readonly logicalDate: number; readonly runAfter: number } | null;
}

const OF_SCHEDULE: ReadonlySet<string> = new Set(["scheduled", "backfill"]);

export function isLatestRun(facts: LatestFacts, now: number): boolean {
  const { intervalEnd, logicalDate, next, runType, schedule } = facts;
  if (!OF_SCHEDULE.has(runType) || logicalDate === null) return true;
  if (isTimeSchedule(schedule)) return !isFollowed({ ...facts, logicalDate, schedule }, now);
  // The next date is known only if it is planned: it comes from user code or from the end of a run.
  if (facts.hasLater) return false;
  if (next === null || next.logicalDate <= logicalDate) return true;
  if (runType === "backfill" && (intervalEnd ?? logicalDate) < next.logicalDate) return false;
  return next.runAfter > now;
}

/** Computed from the schedule itself: a DAG that was paused, or is behind, has due runs that do not exist yet. */
function isFollowed(
  facts: LatestFacts & { readonly logicalDate: number; readonly schedule: ScheduleManifest },
  now: number,
): boolean {
  const { dagId, intervalEnd, jitterMs, logicalDate, schedule, window } = facts;
  const last = { logicalDate, intervalEnd: intervalEnd ?? logicalDate };
  const following = nextRun(schedule, { ...window, catchup: true }, { last, now });
  return following !== null && following.runAfter + jitterOf(dagId, following.logicalDate, jitterMs) <= now;
}

/**
 * Is a run the latest that its schedule asks for? Runs that the schedule has not made always are: somebody, or something
 * that happened, wanted just this one. Of the others, including those of a backfill, only the one after which none has
 * fallen due. Where only the author's code knows the dates, a run of a backfill is old unless its period reaches up to the
 * run that is planned: dates that nobody has made a run for may lie in between.
 */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { isTimeSchedule } from "./ticks.ts";
import { jitterOf, nextRun, type RunWindow } from "./timetable.ts";

/** What is known of a run and its DAG; instants in milliseconds. */
export interface LatestFacts {
  readonly dagId: string;
  readonly runType: string;
  readonly logicalDate: number | null;
  readonly intervalEnd: number | null;
  /** Of the DAG as it is now: that is who would make a later one. */
  readonly schedule: ScheduleManifest;
  readonly window: RunWindow;
  readonly jitterMs: number;
  /** The schedule has made a run of a later date. */
  readonly hasLater: boolean;
  /** The run that is to be made next; null: none is planned. */
  readonly next: { readonly logicalDate: number; readonly runAfter: number } | null;
}

const OF_SCHEDULE: ReadonlySet<string> = new Set(["scheduled", "backfill"]);

export function isLatestRun(facts: LatestFacts, now: number): boolean {
  const { intervalEnd, logicalDate, next, runType, schedule } = facts;
  if (!OF_SCHEDULE.has(runType) || logicalDate === null) return true;
  if (isTimeSchedule(schedule)) return !isFollowed({ ...facts, logicalDate, schedule }, now);
  // What comes next is known only as far as it was planned: the author's code says it, or the end of a run.
  if (facts.hasLater) return false;
  if (next === null || next.logicalDate <= logicalDate) return true;
  if (runType === "backfill" && (intervalEnd ?? logicalDate) < next.logicalDate) return false;
  return next.runAfter > now;
}

/** By the schedule itself: a DAG that was paused, or is behind, has runs that are due and not made. */
function isFollowed(
  facts: LatestFacts & { readonly logicalDate: number; readonly schedule: ScheduleManifest },
  now: number,
): boolean {
  const { dagId, intervalEnd, jitterMs, logicalDate, schedule, window } = facts;
  const last = { logicalDate, intervalEnd: intervalEnd ?? logicalDate };
  const following = nextRun(schedule, { ...window, catchup: true }, { last, now });
  return following !== null && following.runAfter + jitterOf(dagId, following.logicalDate, jitterMs) <= now;
}

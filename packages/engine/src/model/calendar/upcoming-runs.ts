/** The next runs that a schedule asks for, as far as they are known before they are created. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { isTimeSchedule } from "./ticks.ts";
import { type DueRun, dueRun, jitterOf, nextRun } from "./timetable.ts";

type Scheduled = Pick<DagManifest, "dagId" | "schedule" | "start" | "end" | "catchup" | "jitterMs">;

/**
 * The planned run first. The runs after it follow from times alone: those of events, of a timetable's code or of the end of
 * another run are not known yet.
 */
export function upcomingRuns(
  { catchup, dagId, end, jitterMs = 0, schedule, start }: Scheduled,
  { count, now, planned }: { readonly count: number; readonly now: number; readonly planned: DueRun | null },
): DueRun[] {
  const time = schedule.kind === "signal" ? schedule.gather?.time : schedule;
  const isByTime = time !== undefined && isTimeSchedule(time);
  const window = { start: instant(start), end: instant(end), catchup };
  const spread = (run: DueRun): DueRun =>
    jitterMs === 0 ? run : { ...run, runAfter: run.runAfter + jitterOf(dagId, run.logicalDate, jitterMs) };
  const runs: DueRun[] = [];
  let next = planned && dueRun(schedule, window, { planned, now, slackMs: jitterMs });
  if (next !== null && next !== planned) next = spread(next);
  while (next !== null && runs.length < count) {
    runs.push(next);
    const asOf = Math.max(now, next.logicalDate);
    const after: DueRun | null = isByTime
      ? nextRun(schedule, window, { last: next, now: asOf, slackMs: jitterMs })
      : null;
    next = after && spread(after);
  }
  return runs;
}

function instant(iso: string | null): number | null {
  return iso === null ? null : Date.parse(iso);
}

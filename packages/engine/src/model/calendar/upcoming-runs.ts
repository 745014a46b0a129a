/** The next runs of a schedule, as far as they are known before they are created. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { isTimeSchedule } from "./ticks.ts";
import { type DueRun, dueRun, jitterOf, nextRun } from "./timetable.ts";

type Scheduled = Pick<DagManifest, "dagId" | "schedule" | "start" | "end" | "catchup" | "jitterMs">;

/**
 * Begins with the planned run. The runs after it are known only for a time-based schedule, not if they depend on events, on
 * a timetable's code or on the end of another run.
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

/**
 * The next run of a schedule: pure arithmetic on instants in milliseconds.
 *
 * - A tick is an instant that the schedule names.
 * - Style "trigger": a run is due at each tick, which is its logical date.
 * - Style "interval": the run of the interval between two ticks has its start as logical date, and is due at its end.
 * - Catchup: every tick since `start` gets its run, in order. Without catchup, or without `start`: missed ticks are skipped,
 *   except the newest one that is due.
 * - Jitter changes when a run is due, never its logical date or interval.
 */
import type { GatherManifest, ScheduleManifest } from "@tradewind/sdk/manifest";
import { hash32 } from "../version/hash.ts";
import { hasPeriods, isTimeSchedule, type Ticks, ticksOf } from "./ticks.ts";

export interface DueRun {
  readonly logicalDate: number;
  readonly intervalStart: number;
  readonly intervalEnd: number;
  /** The run is not created before this instant. */
  readonly runAfter: number;
}

export interface RunWindow {
  readonly start: number | null;
  /** The last allowed logical date. */
  readonly end: number | null;
  readonly catchup: boolean;
}

/** The last run that this schedule created. */
export type LastRun = Pick<DueRun, "logicalDate" | "intervalEnd">;

interface Standing {
  readonly last: LastRun | null;
  readonly now: number;
  /** A tick at most this old does not count as missed, even if later ticks have followed. */
  readonly slackMs?: number;
}

/** Null: the schedule has no further run. */
export function nextRun(schedule: ScheduleManifest, window: RunWindow, at: Standing): DueRun | null {
  const run = nextUnbounded(schedule, window, at);
  if (run === null || run.logicalDate === Number.POSITIVE_INFINITY) return null;
  return window.end === null || run.logicalDate <= window.end ? run : null;
}

/**
 * The run to create when a planned run is due. With catchup: the planned run. Without catchup, a planned run that was not
 * created in time (the DAG was paused, no scheduler was alive) counts as missed, like the ticks after it, and only the
 * newest due run is created. A planned run counts as missed only `slackMs` after it was due: with a jitter longer than the
 * distance of two ticks, several are pending.
 */
export function dueRun(
  schedule: ScheduleManifest,
  window: RunWindow,
  {
    planned,
    now,
    slackMs = 0,
  }: { readonly planned: DueRun; readonly now: number; readonly slackMs?: number },
): DueRun {
  const time = schedule.kind === "signal" ? schedule.gather?.time : schedule;
  if (time === undefined || !isTimeSchedule(time) || planned.runAfter > now - slackMs) return planned;
  // A time in a signal condition never catches up.
  if (window.catchup && schedule.kind !== "signal") return planned;
  const ticks = ticksOf(time, window.start);
  const end = window.end ?? Number.POSITIVE_INFINITY;
  const newest = hasPeriods(time)
    ? ticks.previous(Math.min(ticks.previous(now) - 1, end))
    : ticks.previous(Math.min(now, end));
  if (newest <= planned.logicalDate) return planned;
  return hasPeriods(time) ? period(ticks, newest) : at(newest);
}

/** Throws a ModelError if the schedule is invalid. */
export function validateSchedule(schedule: ScheduleManifest): void {
  if (isTimeSchedule(schedule)) ticksOf(schedule, null);
  if (schedule.kind === "signal" && schedule.gather?.time) ticksOf(schedule.gather.time, null);
}

/**
 * The delay of a run after its tick, from 0 to `jitterMs`, by a hash of the DAG and the date. DAGs that are due together do
 * not start together, and every scheduler computes the same delay.
 */
export function jitterOf(dagId: string, logicalDate: number, jitterMs: number): number {
  return Math.floor((hash32(`${dagId}#${logicalDate}`) / 2 ** 32) * (jitterMs + 1));
}

/** The first instant after `after` at which a task with its own schedule is due. */
export function nextTick(
  schedule: Extract<ScheduleManifest, { kind: "cron" | "interval" }>,
  { anchor, after }: { readonly anchor: number; readonly after: number },
): number {
  return ticksOf(schedule, anchor).next(after);
}

function nextUnbounded(schedule: ScheduleManifest, window: RunWindow, standing: Standing): DueRun | null {
  const { last, now } = standing;
  switch (schedule.kind) {
    case "none":
    // Events of the trigger create the runs.
    case "trigger":
    // The timetable class is called where user code may run.
    case "timetable":
      return null;
    case "signal":
      return nextPartTime(schedule.gather?.time, window, standing);
    case "once":
      return last ? null : at(window.start ?? now);
    case "continuous": {
      const start = last?.intervalEnd ?? window.start ?? now;
      // Never empty: the end is the logical date of the next run, which must differ.
      const end = Math.max(now, start + 1);
      return { logicalDate: start, intervalStart: start, intervalEnd: end, runAfter: end };
    }
    case "cron":
    case "interval":
    case "dates":
    case "several": {
      const ticks = ticksOf(schedule, window.start);
      if (!hasPeriods(schedule)) return at(nextTrigger(ticks, window, standing));
      return period(ticks, nextPeriod(ticks, window, standing));
    }
  }
}

/** The next time in a signal condition. Ticks before the first planned one do not count as missed. */
function nextPartTime(
  time: GatherManifest["time"],
  window: RunWindow,
  { last, now }: Standing,
): DueRun | null {
  if (time === undefined) return null;
  const ticks = ticksOf(time, window.start);
  if (last !== null) return at(nextTrigger(ticks, { ...window, catchup: false }, { last, now }));
  return at(ticks.next(Math.max(now, (window.start ?? now) - 1)));
}

function nextTrigger(ticks: Ticks, window: RunWindow, { last, now, slackMs = 0 }: Standing): number {
  const earliest = Math.max(
    window.start === null ? Number.NEGATIVE_INFINITY : window.start - 1,
    last === null ? Number.NEGATIVE_INFINITY : last.logicalDate,
  );
  if (earliest !== Number.NEGATIVE_INFINITY) {
    const first = ticks.next(earliest);
    if (window.catchup || first > now - slackMs) return first;
  }
  const newest = ticks.previous(now);
  return newest === Number.NEGATIVE_INFINITY ? ticks.next(now) : newest;
}

/** The start of the next period. */
function nextPeriod(ticks: Ticks, window: RunWindow, { last, now, slackMs = 0 }: Standing): number {
  const earliest = Math.max(
    window.start === null ? Number.NEGATIVE_INFINITY : window.start - 1,
    last === null ? Number.NEGATIVE_INFINITY : last.intervalEnd - 1,
  );
  if (earliest !== Number.NEGATIVE_INFINITY) {
    const first = ticks.next(earliest);
    if (window.catchup || ticks.next(first) > now - slackMs) return first;
  }
  return ticks.previous(ticks.previous(now) - 1);
}

function period(ticks: Ticks, start: number): DueRun {
  const end = ticks.next(start);
  return { logicalDate: start, intervalStart: start, intervalEnd: end, runAfter: end };
}

function at(instant: number): DueRun {
  return { logicalDate: instant, intervalStart: instant, intervalEnd: instant, runAfter: instant };
}

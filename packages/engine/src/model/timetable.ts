/**
 * Which run does a schedule ask for next? Pure arithmetic on instants in milliseconds.
 *
 * Ticks are the instants a schedule names. Style "trigger": a run is due at each tick and has it as its logical date.
 * Style "interval": the run for the period between two ticks is due when the period is over, and its logical date is
 * the period's start. Catchup: every tick since `start` gets its run, in order. No catchup (or no `start`): ticks that were
 * missed are passed over, except the newest that is due. Jitter moves when a run is due, never what it stands for.
 */
import type { GatherManifest, ScheduleManifest } from "@tradewind/sdk/manifest";
import { hash32 } from "./hash.ts";
import { hasPeriods, isTimeSchedule, type Ticks, ticksOf } from "./ticks.ts";

export interface DueRun {
  readonly logicalDate: number;
  readonly intervalStart: number;
  readonly intervalEnd: number;
  /** Not before this instant. */
  readonly runAfter: number;
}

export interface RunWindow {
  readonly start: number | null;
  /** The last logical date allowed. */
  readonly end: number | null;
  readonly catchup: boolean;
}

/** The run that this schedule made last. */
export type LastRun = Pick<DueRun, "logicalDate" | "intervalEnd">;

interface Standing {
  readonly last: LastRun | null;
  readonly now: number;
  /** A tick that lies no longer back than this has not been missed, though others came after it. */
  readonly slackMs?: number;
}

/** Null: the schedule asks for no further run. */
export function nextRun(schedule: ScheduleManifest, window: RunWindow, at: Standing): DueRun | null {
  const run = nextUnbounded(schedule, window, at);
  if (run === null || run.logicalDate === Number.POSITIVE_INFINITY) return null;
  return window.end === null || run.logicalDate <= window.end ? run : null;
}

/** Throws a ModelError when the schedule cannot be used. */
export function validateSchedule(schedule: ScheduleManifest): void {
  if (isTimeSchedule(schedule)) ticksOf(schedule, null);
  if (schedule.kind === "signal" && schedule.gather?.time) ticksOf(schedule.gather.time, null);
}

/**
 * How much later than its tick a run is due, from 0 to `jitterMs`: by a hash of the DAG and the date, so that DAGs that are
 * due together do not start together, and every scheduler comes to the same answer.
 */
export function jitterOf(dagId: string, logicalDate: number, jitterMs: number): number {
  return Math.floor((hash32(`${dagId}#${logicalDate}`) / 2 ** 32) * (jitterMs + 1));
}

/** The first moment after another at which a task with times of its own is due. */
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
    // Its events make the runs.
    case "trigger":
    // It is asked where user code may run.
    case "timetable":
      return null;
    case "signal":
      return nextTold(schedule.gather?.time, window, standing);
    case "once":
      return last ? null : at(window.start ?? now);
    case "continuous": {
      const start = last?.intervalEnd ?? window.start ?? now;
      // Never empty: the end is the next run's logical date, which has to be another one.
      const end = Math.max(now, start + 1);
      return { logicalDate: start, intervalStart: start, intervalEnd: end, runAfter: end };
    }
    case "cron":
    case "interval":
    case "dates":
    case "several": {
      const ticks = ticksOf(schedule, window.start);
      if (!hasPeriods(schedule)) return at(nextTrigger(ticks, window, standing));
      const start = nextPeriod(ticks, window, standing);
      const end = ticks.next(start);
      return { logicalDate: start, intervalStart: start, intervalEnd: end, runAfter: end };
    }
  }
}

/** A time that is a part of a condition: none has been missed before the first. */
function nextTold(time: GatherManifest["time"], window: RunWindow, { last, now }: Standing): DueRun | null {
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

function at(instant: number): DueRun {
  return { logicalDate: instant, intervalStart: instant, intervalEnd: instant, runAfter: instant };
}

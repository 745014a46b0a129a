/**
 * Which run does a schedule ask for next? Pure arithmetic on instants in milliseconds.
 *
 * Ticks are the instants a schedule names. Style "trigger": a run is due at each tick and has it as its logical date.
 * Style "interval": the run for the period between two ticks is due when the period is over, and its logical date is
 * the period's start. Catchup: every tick since `start` gets its run, in order. No catchup (or no `start`): ticks that were
 * missed are passed over, except the newest that is due.
 */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { Cron } from "./cron.ts";
import { ModelError } from "./errors.ts";

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

/** Null: the schedule asks for no further run. */
export function nextRun(
  schedule: ScheduleManifest,
  window: RunWindow,
  at: { readonly last: LastRun | null; readonly now: number },
): DueRun | null {
  const run = nextUnbounded(schedule, window, at);
  return run && (window.end === null || run.logicalDate <= window.end) ? run : null;
}

/** Throws a ModelError when the schedule cannot be used. */
export function validateSchedule(schedule: ScheduleManifest): void {
  if (schedule.kind === "cron" || schedule.kind === "interval") ticksOf(schedule, null);
}

/** The first moment after another at which a task with times of its own is due. */
export function nextTick(
  schedule: Extract<ScheduleManifest, { kind: "cron" | "interval" }>,
  { anchor, after }: { readonly anchor: number; readonly after: number },
): number {
  return ticksOf(schedule, anchor).next(after);
}

function nextUnbounded(
  schedule: ScheduleManifest,
  window: RunWindow,
  { last, now }: { readonly last: LastRun | null; readonly now: number },
): DueRun | null {
  switch (schedule.kind) {
    case "none":
    // Its events make the runs.
    case "trigger":
    case "signal":
      return null;
    case "once":
      return last ? null : at(window.start ?? now);
    case "continuous": {
      const start = last?.intervalEnd ?? window.start ?? now;
      // Never empty: the end is the next run's logical date, which has to be another one.
      const end = Math.max(now, start + 1);
      return { logicalDate: start, intervalStart: start, intervalEnd: end, runAfter: end };
    }
    case "cron":
    case "interval": {
      const ticks = ticksOf(schedule, window.start);
      if (schedule.style === "trigger") return at(nextTrigger(ticks, window, { last, now }));
      const start = nextPeriod(ticks, window, { last, now });
      const end = ticks.next(start);
      return { logicalDate: start, intervalStart: start, intervalEnd: end, runAfter: end };
    }
  }
}

function nextTrigger(
  ticks: Ticks,
  window: RunWindow,
  { last, now }: { last: LastRun | null; now: number },
): number {
  const earliest = Math.max(
    window.start === null ? Number.NEGATIVE_INFINITY : window.start - 1,
    last === null ? Number.NEGATIVE_INFINITY : last.logicalDate,
  );
  if (earliest !== Number.NEGATIVE_INFINITY) {
    const first = ticks.next(earliest);
    if (window.catchup || first > now) return first;
  }
  return ticks.previous(now);
}

/** The start of the next period. */
function nextPeriod(
  ticks: Ticks,
  window: RunWindow,
  { last, now }: { last: LastRun | null; now: number },
): number {
  const earliest = Math.max(
    window.start === null ? Number.NEGATIVE_INFINITY : window.start - 1,
    last === null ? Number.NEGATIVE_INFINITY : last.intervalEnd - 1,
  );
  if (earliest !== Number.NEGATIVE_INFINITY) {
    const first = ticks.next(earliest);
    if (window.catchup || ticks.next(first) > now) return first;
  }
  return ticks.previous(ticks.previous(now) - 1);
}

export interface Ticks {
  /** The first tick after. */
  next(after: number): number;
  /** The last tick at or before. */
  previous(until: number): number;
}

export function ticksOf(
  schedule: Extract<ScheduleManifest, { kind: "cron" | "interval" }>,
  start: number | null,
): Ticks {
  if (schedule.kind === "cron") return new Cron(schedule.expression, schedule.timezone);
  const every = schedule.everyMs;
  if (!Number.isSafeInteger(every) || every < 1) {
    throw new ModelError(
      "INTERVAL_INVALID",
      `A schedule cannot run every ${every} ms. Give a positive whole number.`,
    );
  }
  // Without a start, ticks count from the epoch: a restart or an edit of the DAG does not shift them.
  const anchor = start ?? 0;
  return {
    next: (after) => anchor + (Math.floor((after - anchor) / every) + 1) * every,
    previous: (until) => anchor + Math.floor((until - anchor) / every) * every,
  };
}

function at(instant: number): DueRun {
  return { logicalDate: instant, intervalStart: instant, intervalEnd: instant, runAfter: instant };
}

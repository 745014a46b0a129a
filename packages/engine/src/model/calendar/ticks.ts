/**
 * The instants (ticks) of a time-based schedule, found from any point in either direction. Several schedules together have
 * every tick of any of them, once.
 */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";
import { Cron } from "./cron.ts";

/** A schedule whose ticks can be computed, so that past ticks can be listed. */
export type TimeSchedule = Extract<ScheduleManifest, { kind: "cron" | "interval" | "dates" | "several" }>;

export function isTimeSchedule(schedule: ScheduleManifest): schedule is TimeSchedule {
  const { kind } = schedule;
  return kind === "cron" || kind === "interval" || kind === "dates" || kind === "several";
}

export interface Ticks {
  /** The first tick after the instant; Infinity if there is none. */
  next(after: number): number;
  /** The last tick at or before the instant; -Infinity if there is none. */
  previous(until: number): number;
}

/** Whether a run covers the interval between two ticks instead of a single tick. */
export function hasPeriods(schedule: TimeSchedule): boolean {
  return (schedule.kind === "cron" || schedule.kind === "interval") && schedule.style === "interval";
}

/** Throws a ModelError if the schedule is invalid. */
export function ticksOf(schedule: TimeSchedule, start: number | null): Ticks {
  switch (schedule.kind) {
    case "cron":
      return new Cron(schedule.expression, schedule.timezone);
    case "interval":
      return ticksAtDistance(schedule.everyMs, start);
    case "dates":
      return ticksAt(schedule.dates);
    case "several":
      return ticksOfAny(schedule.of, start);
  }
}

function ticksAtDistance(every: number, start: number | null): Ticks {
  if (!Number.isSafeInteger(every) || every < 1) {
    throw new ModelError(
      "INTERVAL_INVALID",
      `Invalid interval of ${every} ms in a schedule. Give a positive whole number.`,
    );
  }
  // Without a start, ticks count from the epoch: a restart or an edit of the DAG does not move them.
  const anchor = start ?? 0;
  return {
    next: (after) => anchor + (Math.floor((after - anchor) / every) + 1) * every,
    previous: (until) => anchor + Math.floor((until - anchor) / every) * every,
  };
}

function ticksAt(dates: readonly string[]): Ticks {
  const instants = (Array.isArray(dates) ? dates : []).map((date) => Date.parse(date));
  const isSorted = instants.every((instant, i) => i === 0 || instant > (instants[i - 1] as number));
  if (instants.length === 0 || instants.some(Number.isNaN) || !isSorted) {
    throw new ModelError(
      "DATES_INVALID",
      "A schedule of dates needs a list of distinct ISO instants, earliest first. Build the file with this engine's SDK.",
    );
  }
  return {
    next: (after) => instants[firstAfter(instants, after)] ?? Number.POSITIVE_INFINITY,
    previous: (until) => instants[firstAfter(instants, until) - 1] ?? Number.NEGATIVE_INFINITY,
  };
}

/** The index of the first instant after `after`; the length of the list if there is none. */
function firstAfter(instants: readonly number[], after: number): number {
  let [from, to] = [0, instants.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((instants[middle] as number) > after) to = middle;
    else from = middle + 1;
  }
  return from;
}

function ticksOfAny(
  schedules: Extract<TimeSchedule, { kind: "several" }>["of"],
  start: number | null,
): Ticks {
  const isUsable = (schedule: ScheduleManifest) =>
    isTimeSchedule(schedule) && schedule.kind !== "several" && !hasPeriods(schedule);
  if (!Array.isArray(schedules) || schedules.length === 0 || !schedules.every(isUsable)) {
    throw new ModelError(
      "SCHEDULES_INVALID",
      'A combined schedule can only contain cron, interval and dates schedules of style "trigger". Build the file with this engine\'s SDK.',
    );
  }
  const all = schedules.map((schedule) => ticksOf(schedule, start));
  return {
    next: (after) => Math.min(...all.map((ticks) => ticks.next(after))),
    previous: (until) => Math.max(...all.map((ticks) => ticks.previous(until))),
  };
}

/** A DAG's schedule in the form of Airflow's API, and its error. */
import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { durationText } from "@tradewind/sdk/wording";
import { z } from "zod";
import { cronWords, type DueRun, isTimeSchedule, upcomingRuns } from "../../model/index.ts";
import type { DagRow } from "../../store/list/dags.ts";
import { iso, nullableDate } from "../server/fields.ts";

export const scheduleErrorDocument = z
  .object({
    code: z.string(),
    message: z.string(),
    at: z.string(),
    failures: z.number().describe("Consecutive failures."),
    next_try: nullableDate,
  })
  .meta({
    id: "ScheduleError",
    description: "The latest error of a custom timetable. It is retried.",
  });

export function scheduleError(
  row: Pick<DagRow, "schedule_error" | "schedule_failures" | "schedule_retry_at">,
): z.output<typeof scheduleErrorDocument> | null {
  const { schedule_error: error, schedule_failures: failures, schedule_retry_at: next } = row;
  if (error === null) return null;
  const { code, message, at } = error;
  return { code, message, at, failures: failures ?? 0, next_try: iso(next) };
}

/** Number of upcoming runs shown. */
const UPCOMING = 10;

export const upcomingDocument = z
  .object({ logical_date: z.string(), run_after: z.string() })
  .meta({ id: "UpcomingRun", description: "An upcoming run of the schedule and its due time." });

export function upcoming(row: DagRow): z.output<typeof upcomingDocument>[] {
  return upcomingOf(row, UPCOMING).map((run) => ({
    logical_date: new Date(run.logicalDate).toISOString(),
    run_after: new Date(run.runAfter).toISOString(),
  }));
}

/** Ignores whether the DAG is paused. */
export function upcomingOf({ manifest, ...row }: DagRow, count: number): DueRun[] {
  const { next_logical_date: logicalDate, next_run_after: runAfter } = row;
  if (manifest === null || logicalDate === null || runAfter === null) return [];
  const planned = {
    logicalDate: logicalDate.getTime(),
    intervalStart: (row.next_interval_start ?? logicalDate).getTime(),
    intervalEnd: (row.next_interval_end ?? logicalDate).getTime(),
    runAfter: runAfter.getTime(),
  };
  return upcomingRuns(manifest, { planned, now: Date.now(), count });
}

export function timetable(given: ScheduleManifest | undefined) {
  const schedule = given ?? { kind: "none" };
  const isPeriodic = schedule.kind === "timetable" || isTimeSchedule(schedule);
  return {
    timetable_summary: summary(schedule),
    timetable_description: description(schedule),
    timetable_periodic: isPeriodic,
    is_backfillable: isTimeSchedule(schedule),
  };
}

/** Number of dates in a summary. */
const SHOWN_DATES = 3;

function summary(schedule: ScheduleManifest): string | null {
  switch (schedule.kind) {
    case "none":
      return null;
    case "once":
      return "@once";
    case "continuous":
      return "@continuous";
    case "cron":
      return schedule.expression;
    case "interval":
      return `${schedule.everyMs / 1000}s`;
    case "dates":
      return schedule.dates.length === 1 ? (schedule.dates[0] ?? "") : `${schedule.dates.length} dates`;
    case "several":
      return schedule.of.map(summary).join(", ");
    case "timetable":
      return schedule.name;
    case "trigger":
      return schedule.trigger.kind;
    case "signal":
      return schedule.gather === undefined ? "signal" : "asset";
  }
}

function description(schedule: ScheduleManifest): string {
  switch (schedule.kind) {
    case "none":
      return "Never, runs are started manually";
    case "once":
      return "Once, as soon as possible";
    case "continuous":
      return "As soon as the previous run finishes";
    case "cron":
      return cronDescription(schedule);
    case "interval":
      return `Every ${durationText(schedule.everyMs)}`;
    case "dates":
      return `At ${shown(schedule.dates)}`;
    case "several":
      return schedule.of.map(description).join("; or ");
    case "timetable":
      return `By the timetable ${schedule.name} of its file`;
    case "trigger":
      return `At each event of ${schedule.trigger.kind}`;
    case "signal":
      if (schedule.gather === undefined) return "When its signals have arrived";
      return `When its assets have changed${schedule.gather.time ? `; with ${description(schedule.gather.time)}` : ""}`;
  }
}

function cronDescription({ expression, timezone }: { expression: string; timezone: string }): string {
  const { isEveryHour, text } = cronWords(expression);
  return isEveryHour ? text : `${text}, ${timezone}`;
}

function shown(dates: readonly string[]): string {
  const more = dates.length - SHOWN_DATES;
  return `${dates.slice(0, SHOWN_DATES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

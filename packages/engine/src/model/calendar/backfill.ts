/**
 * The rules of backfills, as pure functions: the dates, the action for each date, the progress and the remaining time.
 *
 * The dates are those of the DAG's schedule with a logical date from `from` to `to`, both included. The DAG's start and end
 * do not bound them, because a user asked for these dates explicitly. Dates that were not due when the backfill was created
 * are left to the scheduler: `until` keeps the set of dates fixed for the whole backfill. The dates of an author's timetable
 * come from user code: they are listed when the backfill is created, and the list is the schedule from then on.
 */
import type { DagManifest, ScheduleManifest } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";
import { hasPeriods, isTimeSchedule, type TimeSchedule, ticksOf } from "./ticks.ts";
import type { DueRun } from "./timetable.ts";

/** A backfill with more dates is rejected: its dates, and the tasks of their runs, are counted one by one. */
export const MAX_BACKFILL_RUNS = 100_000;

/** A run of a list: logical date, interval start, interval end, due time; only the first if all four are equal. */
export type ListedRun = readonly [number] | readonly [number, number, number, number];

/** The dates that a timetable class returned, in the order in which their runs are created. */
export interface ListedSchedule {
  readonly kind: "listed";
  readonly dues: readonly ListedRun[];
}

export function listedSchedule(runs: readonly DueRun[], isReverse: boolean): ListedSchedule {
  const dues = runs.map(({ logicalDate: at, intervalStart, intervalEnd, runAfter }): ListedRun => {
    const isMoment = intervalStart === at && intervalEnd === at && runAfter === at;
    return isMoment ? [at] : [at, intervalStart, intervalEnd, runAfter];
  });
  return { kind: "listed", dues: isReverse ? dues.toReversed() : dues };
}

export function listedRun([at, intervalStart = at, intervalEnd = at, runAfter = at]: ListedRun): DueRun {
  return { logicalDate: at, intervalStart, intervalEnd, runAfter };
}

/** Which existing runs a backfill clears and repeats: none, failed runs, or all runs that have ended. */
export type Reprocess = "none" | "failed" | "completed";

/** What a backfill does with a date. "awaited": the date has a queued or running run, which the backfill never changes. */
export type DateAction = "created" | "cleared" | "kept" | "awaited";

export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  /** Dates that are due later than this are not part of the backfill. */
  readonly until: number;
  readonly isReverse: boolean;
  /** The instant from which an interval schedule counts: the DAG's start. */
  readonly anchor: number | null;
}

export interface BackfillRequest {
  readonly from: number;
  readonly to: number;
  readonly now: number;
  readonly isReverse: boolean;
}

/** A schedule that has dates: computed from the manifest, or returned by a timetable class. */
export type DatedSchedule = TimeSchedule | Extract<ScheduleManifest, { kind: "timetable" }>;

/** The schedule and range of a backfill of this DAG. Throws a ModelError if the DAG or the range does not allow one. */
export function backfillRange(
  dag: Pick<DagManifest, "dagId" | "schedule" | "start" | "tasks">,
  { from, to, now, isReverse }: BackfillRequest,
): { schedule: DatedSchedule; range: BackfillRange } {
  const { dagId, schedule, start } = dag;
  if (!isTimeSchedule(schedule) && schedule.kind !== "timetable")
    throw new ModelError(
      "BACKFILL_NO_DATES",
      `DAG "${dagId}" has no time-based schedule (${WITHOUT_DATES[schedule.kind]}), so it has no dates to backfill: give it a schedule with cron(), every(), dates() or a Timetable, or trigger its runs`,
    );
  if (from > to)
    throw new ModelError("BACKFILL_RANGE", "the range ends before it starts: give the earlier date first");
  const waiting = dag.tasks.find((task) => task.dependsOnPast || task.waitForDownstream);
  if (isReverse && waiting)
    throw new ModelError(
      "BACKFILL_REVERSE",
      `DAG "${dagId}" cannot be backfilled backwards: its task "${waiting.taskId}" depends on the previous run`,
    );
  const anchor = start === null ? null : Date.parse(start);
  return { schedule, range: { from, to, until: now, isReverse, anchor } };
}

/** Why a schedule of this kind has no dates. */
const WITHOUT_DATES: Readonly<Record<Exclude<ScheduleManifest, DatedSchedule>["kind"], string>> = {
  none: "it has no schedule",
  once: "it runs once",
  continuous: "each run follows the end of the previous run",
  signal: "signals or assets create its runs, even if its condition includes a time",
  trigger: "events of a trigger create its runs",
};

export function noBackfillDates(dagId: string): ModelError {
  return new ModelError(
    "BACKFILL_EMPTY",
    `The schedule of DAG "${dagId}" has no date in this range that is due: check the range and the schedule's time zone`,
  );
}

export function tooManyBackfillDates(dagId: string, most = MAX_BACKFILL_RUNS): ModelError {
  return new ModelError(
    "BACKFILL_TOO_LONG",
    `The schedule of DAG "${dagId}" has more than ${most} dates in this range: split the range`,
  );
}

/** The runs of these dates in the order in which they are created, beginning with the run of `first` if given. */
export function* backfillDates(
  schedule: TimeSchedule,
  range: BackfillRange,
  first?: number,
): Generator<DueRun, void> {
  const ticks = ticksOf(schedule, range.anchor);
  const isByPeriod = hasPeriods(schedule);
  const runAt = (tick: number, end: number): DueRun => {
    const last = isByPeriod ? end : tick;
    return { logicalDate: tick, intervalStart: tick, intervalEnd: last, runAfter: last };
  };
  if (range.isReverse) {
    for (
      let at = ticks.previous(first ?? range.to);
      at >= range.from && at <= range.to;
      at = ticks.previous(at - 1)
    ) {
      const run = runAt(at, ticks.next(at));
      if (run.runAfter <= range.until) yield run;
    }
    return;
  }
  for (let at = ticks.next((first ?? range.from) - 1), end = 0; at <= range.to; at = end) {
    end = ticks.next(at);
    const run = runAt(at, end);
    // All later dates are due later still.
    if (run.runAfter > range.until) return;
    yield run;
  }
}

/** The run that a date already has. */
export interface ExistingRun {
  readonly id: number;
  readonly state: "queued" | "running" | "success" | "failed";
}

export function actionFor(existing: ExistingRun | undefined, reprocess: Reprocess): DateAction {
  switch (existing?.state) {
    case undefined:
      return "created";
    case "queued":
    case "running":
      return "awaited";
    case "failed":
      return reprocess === "none" ? "kept" : "cleared";
    case "success":
      return reprocess === "completed" ? "cleared" : "kept";
  }
}

export interface PlannedDate {
  readonly run: DueRun;
  readonly action: DateAction;
  readonly existing: ExistingRun | undefined;
}

/** The actions for the next dates, up to the first that needs an own run when there is no room for another. */
export function planDates(
  dates: readonly DueRun[],
  existing: ReadonlyMap<number, ExistingRun>,
  { reprocess, room }: { readonly reprocess: Reprocess; readonly room: number },
): PlannedDate[] {
  const planned: PlannedDate[] = [];
  let left = room;
  for (const run of dates) {
    const other = existing.get(run.logicalDate);
    const action = actionFor(other, reprocess);
    if (isOwn(action) && left-- <= 0) break;
    planned.push({ run, action, existing: other });
  }
  return planned;
}

/** Whether the backfill itself creates or clears the run of the date. */
export function isOwn(action: DateAction): boolean {
  return action === "created" || action === "cleared";
}

/** Counts read from the database. */
export interface BackfillCounts {
  readonly totalRuns: number;
  /** Dates handled so far, by action and state of their run; "gone": the run was deleted. */
  readonly dates: readonly { readonly action: DateAction; readonly state: string; readonly runs: number }[];
  /** Instances of own and awaited runs, by state. A run without instances yet counts the tasks of its DAG. */
  readonly tasks: readonly { readonly state: string; readonly tasks: number }[];
  /** Tasks of a run whose date is not handled yet. */
  readonly tasksPerRun: number;
}

/** `finished` is the sum of `succeeded`, `skipped` and `failed`. */
export interface Tally {
  readonly total: number;
  readonly finished: number;
  readonly succeeded: number;
  readonly skipped: number;
  readonly failed: number;
  readonly running: number;
}

export interface BackfillProgress {
  /** An existing run that the backfill leaves unchanged counts as skipped. */
  readonly runs: Tally & { readonly elsewhere: number; readonly cleared: number };
  /** Tasks of own and awaited runs. Dates that are not handled yet count with the number of tasks of the DAG. */
  readonly tasks: Tally;
  /** Share of all runs that is done. Unfinished runs count by their finished tasks. 100 only if every run has ended. */
  readonly percent: number;
}

export function backfillProgress(counts: BackfillCounts): BackfillProgress {
  const runs = runTally(counts);
  const tasks = taskTally(counts, counts.totalRuns - handled(counts));
  return { runs, tasks, percent: percentOf(runs, tasks) };
}

function handled({ dates }: BackfillCounts): number {
  return dates.reduce((sum, each) => sum + each.runs, 0);
}

function runTally({ totalRuns, dates }: BackfillCounts): BackfillProgress["runs"] {
  const count = (of: (date: BackfillCounts["dates"][number]) => boolean) =>
    dates.filter(of).reduce((sum, each) => sum + each.runs, 0);
  const succeeded = count(({ action, state }) => action !== "kept" && state === "success");
  const failed = count(({ action, state }) => action !== "kept" && state === "failed");
  const skipped = count(({ action, state }) => action === "kept" || state === "gone");
  return {
    total: totalRuns,
    finished: succeeded + failed + skipped,
    succeeded,
    skipped,
    failed,
    running: count(({ action, state }) => action !== "kept" && state === "running"),
    elsewhere: count(({ action }) => action === "awaited"),
    cleared: count(({ action }) => action === "cleared"),
  };
}

function taskTally({ tasks, tasksPerRun }: BackfillCounts, datesLeft: number): Tally {
  const count = (...states: string[]) =>
    tasks.filter(({ state }) => states.includes(state)).reduce((sum, each) => sum + each.tasks, 0);
  const known = tasks.reduce((sum, each) => sum + (each.state === "removed" ? 0 : each.tasks), 0);
  const succeeded = count("success");
  const skipped = count("skipped");
  const failed = count("failed", "upstream_failed");
  return {
    total: known + Math.max(datesLeft, 0) * tasksPerRun,
    finished: succeeded + skipped + failed,
    succeeded,
    skipped,
    failed,
    running: count("running", "queued", "restarting"),
  };
}

function percentOf(runs: Tally, tasks: Tally): number {
  if (runs.finished >= runs.total) return 100;
  if (tasks.total === 0) return floor1((100 * runs.finished) / runs.total);
  // Skipped runs have no tasks to do: the tasks count for the other runs only.
  const kept = runs.skipped / runs.total;
  return Math.min(99.9, floor1(100 * (kept + (1 - kept) * (tasks.finished / tasks.total))));
}

/** Rounds down, so that an unfinished backfill never shows 100. */
function floor1(percent: number): number {
  return Math.floor(percent * 10) / 10;
}

export interface Pace {
  /** When the most recently ended runs ended; newest first. */
  readonly endedAt: readonly number[];
  /** The earliest time at which the backfill can have started to work. */
  readonly since: number;
  readonly now: number;
  /** Runs that have not ended yet. */
  readonly runsLeft: number;
}

/** A backfill is stuck if no run has ended for this many times the usual gap between two ends, and for STUCK_MS. */
const STUCK_AFTER = 5;
const STUCK_MS = 10_000;

/**
 * The remaining time, estimated from the pace of the most recently ended runs. They weigh more than the first runs, because
 * tasks and limits may have changed since. null: no run has ended yet, or the backfill is stuck.
 */
export function remainingMs({ endedAt, since, now, runsLeft }: Pace): number | null {
  if (runsLeft <= 0) return 0;
  if (endedAt.length === 0) return null;
  const oldest = endedAt.at(-1) as number;
  // The duration of the oldest run is unknown: its end only marks where the others begin.
  const [runs, from] = endedAt.length > 2 ? [endedAt.length - 1, oldest] : [endedAt.length, since];
  const newest = endedAt[0] as number;
  const usualMs = (newest - from) / runs;
  if (now - newest > Math.max(STUCK_AFTER * usualMs, STUCK_MS)) return null;
  return Math.round((Math.max(now - from, 1) / runs) * runsLeft);
}

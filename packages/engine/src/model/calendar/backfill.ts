/**
 * What a backfill does, as pure functions: which dates it has, what becomes of each, how far it is, and how long it
 * will take.
 *
 * The dates are those of the DAG's schedule from `from` to `to`, both included, by logical date; the DAG's own start
 * and end do not bound them, for somebody asked for these dates. Those that were not due yet when the backfill was made
 * are left to the scheduler: `until` keeps the set of dates the same however long it takes. The dates of a timetable of the
 * author's own are code's to tell: they are listed when the backfill is made, and are its schedule from then on.
 */
import type { DagManifest, ScheduleManifest } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";
import { hasPeriods, isTimeSchedule, type TimeSchedule, ticksOf } from "./ticks.ts";
import type { DueRun } from "./timetable.ts";

/** More dates than this are refused: they are counted one by one, and so are the tasks of their runs. */
export const MAX_BACKFILL_RUNS = 100_000;

/** A run of a list: logical date, interval, when it is due. Of one that is all of them at once, the first alone. */
export type ListedRun = readonly [number] | readonly [number, number, number, number];

/** The dates of a timetable as its class told them, in the order in which they are to be made. */
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

/** Which dates that have a run already get it done again: those whose run failed, or whose run ended either way. */
export type Reprocess = "none" | "failed" | "completed";

/** What becomes of a date. "awaited": its run is under way with somebody else, who is never disturbed. */
export type DateAction = "created" | "cleared" | "kept" | "awaited";

export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  /** Dates that are due later than this are not its business. */
  readonly until: number;
  readonly isReverse: boolean;
  /** From where an interval counts: the DAG's start. */
  readonly anchor: number | null;
}

export interface BackfillRequest {
  readonly from: number;
  readonly to: number;
  readonly now: number;
  readonly isReverse: boolean;
}

/** A schedule that has dates: it names them by itself, or its class is to be asked. */
export type DatedSchedule = TimeSchedule | Extract<ScheduleManifest, { kind: "timetable" }>;

/** The schedule and range of a backfill of this DAG. Throws a ModelError when there cannot be one. */
export function backfillRange(
  dag: Pick<DagManifest, "dagId" | "schedule" | "start" | "tasks">,
  { from, to, now, isReverse }: BackfillRequest,
): { schedule: DatedSchedule; range: BackfillRange } {
  const { dagId, schedule, start } = dag;
  if (!isTimeSchedule(schedule) && schedule.kind !== "timetable")
    throw new ModelError(
      "BACKFILL_NO_DATES",
      `DAG "${dagId}" has no schedule by time whose dates can be listed (${WITHOUT_DATES[schedule.kind]}), so there are no dates to fill: give it one with cron(), every(), dates() or a Timetable, or trigger its runs`,
    );
  if (from > to)
    throw new ModelError("BACKFILL_RANGE", "the range begins after its end: give the earlier date first");
  const waiting = dag.tasks.find((task) => task.dependsOnPast || task.waitForDownstream);
  if (isReverse && waiting)
    throw new ModelError(
      "BACKFILL_REVERSE",
      `DAG "${dagId}" cannot be filled backwards: its task "${waiting.taskId}" depends on the run before`,
    );
  const anchor = start === null ? null : Date.parse(start);
  return { schedule, range: { from, to, until: now, isReverse, anchor } };
}

/** Why there is nothing to list. */
const WITHOUT_DATES: Readonly<Record<Exclude<ScheduleManifest, DatedSchedule>["kind"], string>> = {
  none: "it has none",
  once: "it runs once",
  continuous: "each run follows the end of the one before",
  signal: "signals or assets make its runs, also where a time is a part of the condition",
  trigger: "the events of a trigger make its runs",
};

export function noBackfillDates(dagId: string): ModelError {
  return new ModelError(
    "BACKFILL_EMPTY",
    `The schedule of DAG "${dagId}" has no date in this range that is due: look at the range, and at the schedule's time zone`,
  );
}

export function tooManyBackfillDates(dagId: string, most = MAX_BACKFILL_RUNS): ModelError {
  return new ModelError(
    "BACKFILL_TOO_LONG",
    `The schedule of DAG "${dagId}" has more than ${most} dates in this range: split it`,
  );
}

/** The runs of these dates in the order in which they are to be made, beginning with the one of `first` if given. */
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
    // What comes later is due later still.
    if (run.runAfter > range.until) return;
    yield run;
  }
}

/** A run that the date has already. */
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

/**
 * What to do with the next dates: all of them, up to the first that would need a run of its own when there is no room
 * for another.
 */
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

/** Whether the run of such a date is the backfill's own. */
export function isOwn(action: DateAction): boolean {
  return action === "created" || action === "cleared";
}

/** What the database counts. */
export interface BackfillCounts {
  readonly totalRuns: number;
  /** Dates handled so far, by what became of them and the state of their run; "gone": it was deleted. */
  readonly dates: readonly { readonly action: DateAction; readonly state: string; readonly runs: number }[];
  /** Instances of the runs it makes or waits for, by state; of runs that have none yet, as many as their DAG has tasks. */
  readonly tasks: readonly { readonly state: string; readonly tasks: number }[];
  /** Tasks that a run of a date has which is not handled yet. */
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
  /** A run that was there and is left alone counts as skipped. */
  readonly runs: Tally & { readonly elsewhere: number; readonly cleared: number };
  /** Of the runs it makes or waits for. Before the last date is reached, the total is what the DAG's tasks amount to. */
  readonly tasks: Tally;
  /** Of all runs, those under way by their share of finished tasks; 100 only when nothing is left to do. */
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
  // Runs that were left alone have no tasks to do: what is left to do is the rest.
  const kept = runs.skipped / runs.total;
  return Math.min(99.9, floor1(100 * (kept + (1 - kept) * (tasks.finished / tasks.total))));
}

/** Down, so that what is not finished never shows as such. */
function floor1(percent: number): number {
  return Math.floor(percent * 10) / 10;
}

export interface Pace {
  /** When the runs that ended last did so, the newest first. */
  readonly endedAt: readonly number[];
  /** Since when it has been at work, at the earliest. */
  readonly since: number;
  readonly now: number;
  /** Runs that are still to end. */
  readonly runsLeft: number;
}

/** No run has ended for so many times the usual time between two ends, and for so long: the backfill waits for something. */
const STUCK_AFTER = 5;
const STUCK_MS = 10_000;

/**
 * How long it will take, by the pace of the runs that ended last: what they were like, and whether the limit was
 * changed, counts more than how it all began. null: no run has ended yet, or none for long.
 */
export function remainingMs({ endedAt, since, now, runsLeft }: Pace): number | null {
  if (runsLeft <= 0) return 0;
  if (endedAt.length === 0) return null;
  const oldest = endedAt.at(-1) as number;
  // The oldest one's own time is not known: it only marks where the others begin.
  const [runs, from] = endedAt.length > 2 ? [endedAt.length - 1, oldest] : [endedAt.length, since];
  const newest = endedAt[0] as number;
  const usualMs = (newest - from) / runs;
  if (now - newest > Math.max(STUCK_AFTER * usualMs, STUCK_MS)) return null;
  return Math.round((Math.max(now - from, 1) / runs) * runsLeft);
}

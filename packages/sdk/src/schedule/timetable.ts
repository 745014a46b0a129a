/**
 * A custom schedule: a class with a method `next`. It runs in a child process without credentials, for one run after
 * the other; the answer is stored as the DAG's plan. It must be a pure function of its arguments: it may be called
 * twice, and on other machines, with the same result.
 */

import { DagDefinitionError, show, TaskError } from "../check/errors.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { ScheduleManifest } from "../manifest.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import type { DueCall, DueFacts, DueOutcome } from "../runtime/program.ts";
import { tradewindCallsUserCode } from "../runtime/user-code.ts";
import { isoInstant, MOMENT_FORMS, type Moment } from "./instant.ts";

/**
 * A run that a timetable returns.
 * @example const due: Due = { logicalDate: "2027-01-04", runAfter: "2027-01-04T08:00:00Z" };
 */
export interface Due {
  /** The logical date of the run, later than that of the run before. */
  readonly logicalDate: Moment;
  /** The data interval of the run (default: empty, at the logical date). */
  readonly dataInterval?: { readonly start: Moment; readonly end: Moment };
  /** The earliest start of the run (default: the end of its data interval). */
  readonly runAfter?: Moment;
}

/**
 * The last run that a timetable returned.
 * @example const following = (last: DueBefore) => new Date(last.logicalDate.getTime() + 86_400_000);
 */
export interface DueBefore {
  readonly logicalDate: Date;
  readonly dataInterval: { readonly start: Date; readonly end: Date };
}

/**
 * The argument of `next`.
 * @example const from = (question: TimetableQuery) => question.last?.logicalDate ?? question.start ?? question.now;
 */
export interface TimetableQuery {
  /** The last run that it returned, or null. */
  readonly last: DueBefore | null;
  /** The current time; in a backfill, the time at which the previous run was due. */
  readonly now: Date;
  /** The DAG's `start` and `end`; answers outside of them create no run. */
  readonly start: Date | null;
  readonly end: Date | null;
}

/** The key of a timetable's manifest; a registered symbol, because it may come from another copy of the SDK. */
export const TIMETABLE: unique symbol = Symbol.for("tradewind.timetable") as never;

/**
 * A custom schedule: a class with JSON arguments whose `next` returns the run after `last`.
 * @see docs/guides/schedules.md
 *
 * @example
 * ```ts
 * class WorkingDays extends Timetable<{ hour: number }> {
 *   next({ last, now }: TimetableQuery) {
 *     const day = new Date(last?.logicalDate ?? now);
 *     do day.setUTCDate(day.getUTCDate() + 1);
 *     while (day.getUTCDay() % 6 === 0 || isHoliday(day));
 *     day.setUTCHours(this.args.hour, 0, 0, 0);
 *     return day;
 *   }
 * }
 * dag("settlement", { schedule: new WorkingDays({ hour: 8 }) }, build);
 * ```
 */
export abstract class Timetable<Args = void> {
  readonly args: Args;

  constructor(args: Args) {
    this.args = args;
  }

  /** Returns the first run after `last`, or null if there is none; a moment alone is a run with that logical date. */
  abstract next(question: TimetableQuery): Due | Moment | null;

  /** For the engine. */
  [TIMETABLE](where: string): ScheduleManifest {
    const name = this.constructor.name || "Timetable";
    if (typeof this.next !== "function") throw bad(`${where}: ${name} has no method next()`);
    const args = jsonCopy(this.args ?? null, {
      root: `${where}: ${name}: args`,
      notJson: bad,
      tooLarge: bad,
    });
    return Object.freeze({ kind: "timetable", name, args });
  }
}

export function isTimetable(value: unknown): value is Timetable<unknown> {
  return typeof value === "object" && value !== null && TIMETABLE in value;
}

/** Never rejects. */
export async function runTimetable(timetable: Timetable<unknown>, call: DueCall): Promise<DueOutcome> {
  try {
    return { ok: true, due: await tradewindCallsUserCode(() => dueOf(timetable, call)) };
  } catch (thrown) {
    return { ok: false, error: errorFacts(thrown) };
  }
}

/**
 * The rules of every schedule: no run before `start`, none after `end`, and only the newest of the missed runs without
 * `catchup`.
 */
function dueOf(timetable: Timetable<unknown>, call: DueCall): DueFacts | null {
  const { start, end, now, catchup } = call;
  const isInside = (due: DueFacts | null) => due !== null && (end === null || due.logicalDate <= end);
  let due = answer(timetable, call, call.last);
  while (due !== null && start !== null && due.logicalDate < start) due = answer(timetable, call, due);
  if (due === null || !isInside(due)) return null;
  if (catchup || due.runAfter > now - call.slackMs) return due;
  for (;;) {
    const later: DueFacts | null = answer(timetable, call, due);
    if (later === null || !isInside(later) || later.runAfter > now) return due;
    due = later;
  }
}

function answer(timetable: Timetable<unknown>, call: DueCall, last: DueCall["last"]): DueFacts | null {
  const given: unknown = timetable.next({
    last: last === null ? null : before(last),
    now: new Date(call.now),
    start: call.start === null ? null : new Date(call.start),
    end: call.end === null ? null : new Date(call.end),
  });
  if (given === null) return null;
  const due = factsOf(given);
  if (last !== null && due.logicalDate <= last.logicalDate) {
    const was = new Date(last.logicalDate).toISOString();
    throw wrong(
      `next() returned ${new Date(due.logicalDate).toISOString()}, which is not after the last run's ${was}; return a later one, or null`,
    );
  }
  return due;
}

function before({ logicalDate, intervalStart, intervalEnd }: NonNullable<DueCall["last"]>): DueBefore {
  return {
    logicalDate: new Date(logicalDate),
    dataInterval: { start: new Date(intervalStart), end: new Date(intervalEnd) },
  };
}

function factsOf(given: unknown): DueFacts {
  const { logicalDate, dataInterval, runAfter }: Partial<Record<keyof Due, unknown>> = isMoment(given)
    ? { logicalDate: given }
    : typeof given === "object" && given !== null && "logicalDate" in given
      ? given
      : fail(given);
  const at = instant(logicalDate, "logicalDate");
  const period =
    dataInterval === undefined ? null : (dataInterval as Partial<Record<"start" | "end", unknown>> | null);
  const intervalStart = dataInterval === undefined ? at : instant(period?.start, "dataInterval.start");
  const intervalEnd = dataInterval === undefined ? at : instant(period?.end, "dataInterval.end");
  if (intervalStart > intervalEnd) throw wrong("next() returned a dataInterval that ends before it starts");
  return {
    logicalDate: at,
    intervalStart,
    intervalEnd,
    runAfter: runAfter === undefined ? intervalEnd : instant(runAfter, "runAfter"),
  };
}

function isMoment(value: unknown): value is Moment {
  return value instanceof Date || typeof value === "string";
}

function instant(value: unknown, name: string): number {
  const iso = isoInstant(value);
  if (iso !== null) return Date.parse(iso);
  throw wrong(`next() returned the ${name} ${show(value)}; give ${MOMENT_FORMS}`);
}

function fail(given: unknown): never {
  if (given instanceof Promise) throw wrong("next() returned a promise; it must return synchronously");
  throw wrong(`next() returned ${show(given)}; return { logicalDate }, a moment, or null for no more runs`);
}

function wrong(message: string): TaskError {
  return new TaskError("TW_TIMETABLE_ANSWER", message);
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_SCHEDULE", message);
}

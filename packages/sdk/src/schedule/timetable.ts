/**
 * A schedule that no cron expression can say: a class with a `next` of the author's own. It is asked in a child process
 * without credentials, for one run after the other; the answer is stored as the DAG's plan. It must be a pure function of
 * what it is given: it may be asked twice, and elsewhere, and has to say the same.
 */

import { DagDefinitionError, show, TaskError } from "../check/errors.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { ScheduleManifest } from "../manifest.ts";
import { errorFacts } from "../runtime/error-facts.ts";
import type { DueCall, DueFacts, DueOutcome } from "../runtime/program.ts";
import { tradewindCallsUserCode } from "../runtime/user-code.ts";
import { isoInstant, MOMENT_FORMS, type Moment } from "./instant.ts";

/** A run that a timetable asks for. */
export interface Due {
  /** Names the run: later than that of the run before. */
  readonly logicalDate: Moment;
  /** The data the run is for; nothing but the logical date when left out. */
  readonly dataInterval?: { readonly start: Moment; readonly end: Moment };
  /** When it may start: at the end of its data interval when left out. */
  readonly runAfter?: Moment;
}

/** A run that a timetable has asked for. */
export interface DueBefore {
  readonly logicalDate: Date;
  readonly dataInterval: { readonly start: Date; readonly end: Date };
}

/** What `next` is given. */
export interface TimetableQuestion {
  /** The run that it asked for last; null: none so far. */
  readonly last: DueBefore | null;
  /** For the dates of a backfill: the moment at which the run before was due, as if it had been asked then. */
  readonly now: Date;
  /** The DAG's own `start` and `end`. What lies outside of them gets no run, whatever the answer. */
  readonly start: Date | null;
  readonly end: Date | null;
}

/** Where a timetable answers its manifest. Registered: it may come from a package with its own copy of this SDK. */
export const TIMETABLE: unique symbol = Symbol.for("tradewind.timetable") as never;

/**
 * A timetable of the author's own: a class with JSON arguments and a `next` that answers the run after `last`. `start`,
 * `end` and `catchup` are kept for it: without `catchup` it is asked on until the newest run that is due is found.
 *
 * @example
 * ```ts
 * class WorkingDays extends Timetable<{ hour: number }> {
 *   next({ last, now }: TimetableQuestion) {
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

  /** The first run after `last`, or null when there is none. A moment alone is a run with that logical date. */
  abstract next(question: TimetableQuestion): Due | Moment | null;

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

/** The rules of every schedule: nothing before `start`, nothing after `end`; of what was missed, the newest. */
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
      `next() answered ${new Date(due.logicalDate).toISOString()}, which is not after the last run's ${was}; answer a later one, or null`,
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
  if (intervalStart > intervalEnd) throw wrong("next() answered a dataInterval that ends before it starts");
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
  throw wrong(`next() answered the ${name} ${show(value)}; give ${MOMENT_FORMS}`);
}

function fail(given: unknown): never {
  if (given instanceof Promise) throw wrong("next() answered a promise; it has to answer at once");
  throw wrong(`next() answered ${show(given)}; answer { logicalDate }, a moment, or null for no more runs`);
}

function wrong(message: string): TaskError {
  return new TaskError("TW_TIMETABLE_ANSWER", message);
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_SCHEDULE", message);
}

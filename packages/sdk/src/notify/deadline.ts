/**
 * Deadlines: the time by which a run or a task must have succeeded, and the actions if it has not. A missed deadline
 * does not change the run; it is recorded, and its actions run at least once.
 */

import { DagDefinitionError, show } from "../check/errors.ts";
import { knownOptions } from "../check/option-check.ts";
import type { DeadlineAction, DeadlineManifest, DeadlineStart } from "../manifest.ts";
import type { AnyParams, BaseContext } from "../runtime/context.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { isNotice, type Notice } from "./notice.ts";

/**
 * The context of a function in `then`.
 * @example const late = (ctx: DeadlineContext) => notify(`${ctx.run.id} was due at ${ctx.deadline.dueAt.toISOString()}`);
 */
export interface DeadlineContext extends BaseContext {
  readonly event: "deadline";
  /** Null if the run's conf does not satisfy `params`. */
  readonly params: AnyParams | null;
  /** Null for a deadline of the run. */
  readonly taskId: string | null;
  readonly deadline: {
    /** The index in the list of the DAG's or the task's deadlines, from 0. */
    readonly ordinal: number;
    readonly dueAt: Date;
  };
}

/**
 * A function that is called after a missed deadline, and again if it throws.
 * @example const late: DeadlineFunction = (ctx) => notify(`${ctx.run.id} is late`);
 */
export type DeadlineFunction = (ctx: DeadlineContext) => unknown;

/**
 * The type of {@link averageOf}.
 * @example const after: AverageOf = averageOf(10, { atLeast: 5 });
 */
export interface AverageOf {
  readonly kind: "averageOf";
  readonly runs: number;
  readonly atLeast: number;
}

/**
 * Options of {@link deadline}.
 * @example const options: DeadlineOptions = { after: "queued", within: "30m" };
 */
export interface DeadlineOptions {
  /**
   * The moment of the run from which the time counts; averageOf() counts from its start plus the average duration of
   * the last runs.
   */
  readonly after: "queued" | "logicalDate" | "start" | AverageOf;
  /** The time after that moment by which the run or the task must have succeeded. */
  readonly within: Duration;
  /**
   * The actions if it has not: functions, `webhook()`, `email()`, `sendSignal()`; without actions, a missed deadline is
   * only recorded.
   */
  readonly then?: readonly (DeadlineFunction | Notice)[];
}

/**
 * The type of {@link deadline}.
 * @example const deadlines: Deadline[] = [deadline({ after: "logicalDate", within: "2h" })];
 */
export interface Deadline {
  readonly kind: "deadline";
  readonly manifest: DeadlineManifest;
  /** The function of each action in the manifest. */
  readonly functions: readonly (DeadlineFunction | null)[];
}

const MAX_RUNS = 1_000;

/**
 * Declares a deadline, for the option `deadline` of a DAG or a task.
 * @see docs/guides/deadlines.md
 * @example dag("sales", { deadline: deadline({ after: "queued", within: "30m", then: [email({ to: "ops@shop.test", connection: "mail" })] }) }, build);
 */
export function deadline(options: DeadlineOptions): Deadline {
  const o = knownOptions(options, ["after", "within", "then"], "deadline()");
  const withinMs = durationMs(o["within"], "deadline(): within");
  if (withinMs === 0) throw bad("deadline(): within must be more than 0");
  const then: unknown = o["then"] ?? [];
  // A list even for one action: an object whose `then` is a function would be treated as a promise.
  if (!Array.isArray(then)) throw bad(`deadline(): then takes a list of actions, got ${show(then)}`);
  return Object.freeze({
    kind: "deadline",
    manifest: { after: startOf(o["after"]), withinMs, actions: then.map(actionOf) },
    functions: then.map((each: unknown) => (typeof each === "function" ? (each as DeadlineFunction) : null)),
  });
}

/**
 * For `after`: the start of the run plus the average duration of the last successful runs, if there are `atLeast`
 * (default 3).
 * @see docs/guides/deadlines.md
 * @example deadline({ after: averageOf(10), within: "15m", then: [sendSignal(signal("crunch.slow"))] });
 */
export function averageOf(runs: number, options: { readonly atLeast?: number } = {}): AverageOf {
  const o = knownOptions(options, ["atLeast"], "averageOf()");
  const atLeast = o["atLeast"] ?? Math.min(3, runs);
  if (!isCount(runs, MAX_RUNS))
    throw bad(`averageOf(): the number of runs is a whole number from 1 to ${MAX_RUNS}, got ${show(runs)}`);
  if (!isCount(atLeast, runs))
    throw bad(`averageOf(): atLeast is a whole number from 1 to ${runs}, got ${show(atLeast)}`);
  return Object.freeze({ kind: "averageOf", runs, atLeast });
}

/** The option `deadline`: one or several; undefined if it is missing. */
export function deadlinesOf(value: unknown, where: string): readonly Deadline[] | undefined {
  if (value === undefined) return undefined;
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const wrong = all.findIndex((each) => !isDeadline(each));
  if (wrong >= 0) throw bad(`${where}: deadline takes results of deadline(), got ${show(all[wrong])}`);
  return all.length === 0 ? undefined : (all as readonly Deadline[]);
}

function actionOf(given: unknown): DeadlineAction {
  if (typeof given === "function") return { kind: "function" };
  if (isNotice(given)) return given.action;
  throw bad(`deadline(): then takes functions, webhook(), email() and sendSignal(), got ${show(given)}`);
}

function startOf(after: unknown): DeadlineStart {
  if (after === "queued" || after === "logicalDate" || after === "start") return after;
  if (typeof after === "object" && after !== null && (after as AverageOf).kind === "averageOf") {
    const { runs, atLeast } = after as AverageOf;
    return { averageOf: runs, atLeast };
  }
  throw bad(
    `deadline(): after must be "queued", "logicalDate", "start" or averageOf(10), got ${show(after)}`,
  );
}

/** Compares the shape, not the class: a deadline may come from another copy of the SDK. */
function isDeadline(value: unknown): value is Deadline {
  return typeof value === "object" && value !== null && (value as Deadline).kind === "deadline";
}

function isCount(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}

/**
 * Deadlines: by when a run or a task has to have succeeded, and who is told when it has not. A deadline that is missed
 * changes nothing about the run; it is recorded, and its actions are carried out at least once.
 */

import { DagDefinitionError, show } from "../check/errors.ts";
import { knownOptions } from "../check/option-check.ts";
import type { DeadlineAction, DeadlineManifest, DeadlineStart } from "../manifest.ts";
import type { AnyParams, BaseContext } from "../runtime/context.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { isNotice, type Notice } from "./notice.ts";

/** What a function in `then` receives. */
export interface DeadlineContext extends BaseContext {
  readonly event: "deadline";
  /** null when the run's conf does not satisfy `params`. */
  readonly params: AnyParams | null;
  /** null for a deadline of the run. */
  readonly taskId: string | null;
  readonly deadline: {
    /** Its place in the list of the DAG's or the task's deadlines, from 0. */
    readonly ordinal: number;
    readonly dueAt: Date;
  };
}

/** Called when a deadline was missed, in a process of its own kind as other callbacks. What it throws makes it be called again. */
export type DeadlineFunction = (ctx: DeadlineContext) => unknown;

/** The average of the last runs, from {@link averageOf}. */
export interface AverageOf {
  readonly kind: "averageOf";
  readonly runs: number;
  readonly atLeast: number;
}

export interface DeadlineOptions {
  /**
   * From when the time counts, always by the run: the moment it was queued, its logical date, its start, or its start
   * and the time that the last runs took on average. A run without a logical date has no deadline that counts from it.
   */
  readonly after: "queued" | "logicalDate" | "start" | AverageOf;
  /** How long after that it has to have succeeded. */
  readonly within: Duration;
  /** What is done when it has not: functions, `webhook()`, `email()`, `sendSignal()`. None: it is recorded only. */
  readonly then?: readonly (DeadlineFunction | Notice)[];
}

/** What {@link deadline} returns. */
export interface Deadline {
  readonly kind: "deadline";
  readonly manifest: DeadlineManifest;
  /** Beside each action of the manifest, its function. */
  readonly functions: readonly (DeadlineFunction | null)[];
}

const MAX_RUNS = 1_000;

/**
 * A deadline, for the option `deadline` of a DAG or of a task.
 *
 * @example
 * ```ts
 * dag("sales", { deadline: deadline({ after: "queued", within: "30m", then: [email({ to: "ops@example.com", connection: "mail" })] }) }, build);
 * ```
 */
export function deadline(options: DeadlineOptions): Deadline {
  const o = knownOptions(options, ["after", "within", "then"], "deadline()");
  const withinMs = durationMs(o["within"], "deadline(): within");
  if (withinMs === 0) throw bad("deadline(): within must be more than 0");
  const then: unknown = o["then"] ?? [];
  // A list even of one: an object whose `then` is a function would be taken for a promise.
  if (!Array.isArray(then)) throw bad(`deadline(): then takes a list of actions, got ${show(then)}`);
  return Object.freeze({
    kind: "deadline",
    manifest: { after: startOf(o["after"]), withinMs, actions: then.map(actionOf) },
    functions: then.map((each: unknown) => (typeof each === "function" ? (each as DeadlineFunction) : null)),
  });
}

/**
 * For `after`: the run's start, and the average time of its DAG's last successful runs (of a task: from the run's start
 * to the task's end). While there are fewer of them than `atLeast` (3, or all that are asked for), there is no deadline.
 *
 * @example
 * ```ts
 * deadline({ after: averageOf(10), within: "15m", then: [sendSignal(signal("crunch.slow"))] });
 * ```
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

/** The option `deadline`: one or several. undefined when it is left out. */
export function deadlinesOf(value: unknown, where: string): readonly Deadline[] | undefined {
  if (value === undefined) return undefined;
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const wrong = all.findIndex((each) => !isDeadline(each));
  if (wrong >= 0) throw bad(`${where}: deadline takes what deadline() returned, got ${show(all[wrong])}`);
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

/** By shape: it may come from a package with its own copy of the SDK. */
function isDeadline(value: unknown): value is Deadline {
  return typeof value === "object" && value !== null && (value as Deadline).kind === "deadline";
}

function isCount(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}

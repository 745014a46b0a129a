/** The options of a DAG: their types, their defaults and the checks that make a bad one fail at definition. */

import { orElse } from "../check/definition-errors.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import { atLeast, choice, duration, flag, knownOptions, text } from "../check/option-check.ts";
import { DAG_OPTION_NAMES } from "../check/option-names.ts";
import { isStandardSchema, type SchemaOutput, type StandardSchemaV1 } from "../check/standard-schema.ts";
import type { DagManifest } from "../manifest.ts";
import { type Deadline, deadlinesOf } from "../notify/deadline.ts";
import { type CallbackOption, callbackOptions } from "../notify/notice.ts";
import type { AnyParams, Callback } from "../runtime/context.ts";
import { type ConditionPart, conditionManifest, noTasks } from "../schedule/condition.ts";
import type { Duration } from "../schedule/duration.ts";
import { isoInstant, MOMENT_FORMS, type Moment } from "../schedule/instant.ts";
import {
  type EventParams,
  type EventSchedule,
  paramsOf,
  type ScheduleOption,
  type SignalParams,
  type SignalSchedule,
  scheduleManifest,
} from "../schedule/schedule.ts";
import { isTimetable, type Timetable } from "../schedule/timetable.ts";
import { checkEnv, type Env } from "./params/env.ts";
import { checkDefaults, type RawOptions, type TaskDefaults } from "./task-options.ts";

/** Stands for "no params declared". */
export type NoSchema = StandardSchemaV1<AnyParams | undefined, AnyParams>;

/** Options of a DAG. `S` is the validator given as `params`. */
export interface DagOptions<S extends StandardSchemaV1 = NoSchema> {
  /**
   * When runs are made: `cron()`, `every()`, `dates()`, a list of those, `once()`, `continuous()`, `on()`, a `Timetable`, a
   * preset like "@daily", or null (null).
   */
  readonly schedule?: ScheduleOption;
  /** The first moment that a scheduled run may stand for; an ISO text needs an offset or "Z". */
  readonly start?: Moment;
  /** The last such moment. */
  readonly end?: Moment;
  /** Makes the runs that were missed since `start` (false). */
  readonly catchup?: boolean;
  /** Scheduled runs are due up to that much later, each by a time of its own; their logical dates stay (none). */
  readonly jitter?: Duration;
  /** Pauses the DAG when so many scheduled runs in a row have failed (never). */
  readonly pauseAfterFailures?: number;
  /** Runs of this DAG at once (16). */
  readonly maxActiveRuns?: number;
  /** Tasks at once within one run (16). */
  readonly maxActiveTasks?: number;
  /** Tasks at once over all runs of the DAG. */
  readonly maxActiveTasksPerDag?: number;
  /** The longest time a run may take. */
  readonly runTimeout?: Duration;
  /** How many times a failed run is tried again, as the same run (0). */
  readonly runRetries?: number;
  /** The wait before such a try ("5m"). */
  readonly runRetryDelay?: Duration;
  /** What runs again: what failed and all that comes after it ("failure"), or everything ("start"). */
  readonly runRetryFrom?: "failure" | "start";
  /** By when a run has to have succeeded, and who is told when it has not: `deadline()`, one or several. */
  readonly deadline?: Deadline | readonly Deadline[];
  /** Closes the run when signals make it true: streaming tasks are stopped, rules are heard no more. */
  readonly stop?: ConditionPart;
  /**
   * What closes a run with streaming tasks or rules, besides `stop` and people: "batchDone", that all batch tasks have
   * finished; or nothing ("stopped").
   */
  readonly endWhen?: "stopped" | "batchDone";
  /** Environment variables of its tasks and callbacks: texts, `variable("key")`, `connection("id").host`. */
  readonly env?: Env;
  /** Options for all tasks that do not say otherwise. */
  readonly defaults?: TaskDefaults<SchemaOutput<S>>;
  /** Validates the run's conf into `ctx.params`: zod, valibot, arktype, or any other Standard Schema. */
  readonly params?: S;
  readonly tags?: readonly string[];
  readonly owner?: string;
  readonly description?: string;
  /** Markdown, shown in the UI. */
  readonly docs?: string;
  /** Functions to call, and notices to send, when a run has succeeded. */
  readonly onSuccess?: CallbackOption<Callback<SchemaOutput<S>>>;
  /** The same when a run has failed and is not tried again. */
  readonly onFailure?: CallbackOption<Callback<SchemaOutput<S>>>;
}

/** Options of a DAG that runs on events and has no schema of its own for its params: they are the event. */
export interface EventDagOptions<Event>
  extends Omit<DagOptions<StandardSchemaV1<EventParams<Event>>>, "schedule" | "params"> {
  readonly schedule: EventSchedule<Event>;
  readonly params?: undefined;
}

/** Options of a DAG that runs on signals and has no schema of its own for its params: they are the signal. */
export interface SignalDagOptions<Value>
  extends Omit<DagOptions<StandardSchemaV1<SignalParams<Value>>>, "schedule" | "params"> {
  readonly schedule: SignalSchedule<Value>;
  readonly params?: undefined;
}

/** The part of a DAG's manifest that options decide; the params' JSON Schema is added when it is asked for. */
export type DagSettings = Omit<DagManifest, "dagId" | "paramsSchema" | "tasks" | "groups">;

/** The functions of a DAG that run after the fact. */
export interface DagCallbacks {
  readonly onSuccess: readonly Callback<never>[];
  readonly onFailure: readonly Callback<never>[];
  readonly deadlines?: readonly Deadline[];
}

/** A DAG's options, checked. */
export interface CheckedDagOptions {
  readonly settings: DagSettings;
  readonly defaults: RawOptions;
  readonly params: StandardSchemaV1 | null;
  readonly callbacks: DagCallbacks;
  readonly timetable: Timetable<unknown> | null;
  readonly env: Env | undefined;
}

export function checkDagOptions(options: unknown, where: string): CheckedDagOptions {
  const o = knownOptions(options, DAG_OPTION_NAMES, where, "dag");
  const none: DagSettings["schedule"] = { kind: "none" };
  const schedule = orElse(() => scheduleManifest(o["schedule"], `${where}: schedule`), none);
  // Not null: that a start is missing does not follow from one that was refused.
  const start = orElse(() => instant(o["start"], `${where}: start`), new Date(0).toISOString());
  const end = orElse(() => instant(o["end"], `${where}: end`), null);
  const params = orElse(() => standardSchema(o["params"], where), null);
  const { callbacks, functions, notices } = callbackOptions<Callback<never>>(o, where);
  const { onFailure, onSuccess } = functions;
  const deadlines = orElse(() => deadlinesOf(o["deadline"], where), undefined);
  const settings: DagSettings = {
    description: text(o, "description", where),
    docs: text(o, "docs", where),
    owner: text(o, "owner", where),
    tags: orElse(() => tags(o["tags"], where), []),
    schedule,
    start,
    end,
    catchup: flag(o, "catchup", where),
    maxActiveRuns: atLeast(
      o,
      "maxActiveRuns",
      { min: 1, fallback: schedule.kind === "continuous" ? 1 : 16 },
      where,
    ),
    maxActiveTasks: atLeast(o, "maxActiveTasks", { min: 1, fallback: 16 }, where),
    ...(o["maxActiveTasksPerDag"] !== undefined && {
      maxActiveTasksPerDag: atLeast(o, "maxActiveTasksPerDag", { min: 1, fallback: 1 }, where),
    }),
    runTimeoutMs: duration(o, "runTimeout", null, where),
    hasParams: params !== null,
    callbacks: { success: callbacks.success, failure: callbacks.failure },
    ...notices,
    ...orElse(() => closing(o, where), {}),
    ...orElse(() => retrying(o, where), {}),
    ...(deadlines && { deadlines: deadlines.map(({ manifest }) => manifest) }),
    // Of a schedule that was refused, nothing follows.
    ...(schedule !== none && orElse(() => spreading(o, schedule, where), {})),
  };
  orElse(() => checkTogether(settings, where), undefined);
  return {
    settings,
    defaults: checkDefaults(o["defaults"], where),
    params: params ?? paramsOf(o["schedule"]),
    callbacks: { onSuccess, onFailure, ...(deadlines && { deadlines }) },
    timetable: isTimetable(o["schedule"]) ? o["schedule"] : null,
    env: checkEnv(o["env"], where),
  };
}

/** Schedules whose runs are made at their moment, and not by what happens. */
const BY_TIME = new Set<DagSettings["schedule"]["kind"]>([
  "once",
  "cron",
  "interval",
  "dates",
  "several",
  "timetable",
]);

/** Left out when not used, as `closing`. */
function spreading(
  o: RawOptions,
  { kind }: DagSettings["schedule"],
  where: string,
): Pick<DagSettings, "jitterMs" | "pauseAfterFailures"> {
  const jitterMs = duration(o, "jitter", 0, where);
  const pauseAfterFailures = atLeast(o, "pauseAfterFailures", { min: 1, fallback: 0 }, where);
  if (jitterMs > 0 && !BY_TIME.has(kind))
    throw bad(`${where}: jitter needs a schedule by time, like cron() or every(); "${kind}" is none`);
  if (pauseAfterFailures > 0 && !BY_TIME.has(kind) && kind !== "continuous")
    throw bad(
      `${where}: pauseAfterFailures counts scheduled runs, and a schedule of the kind "${kind}" makes none`,
    );
  return { ...(jitterMs > 0 && { jitterMs }), ...(pauseAfterFailures > 0 && { pauseAfterFailures }) };
}

/** Left out when not used: the manifest of a DAG without it is the same as ever. */
function closing(o: RawOptions, where: string): Pick<DagSettings, "stop" | "endWhen"> {
  const at = `${where}: stop`;
  const endWhen = choice(o, "endWhen", ["stopped", "batchDone"], where);
  return {
    ...(o["stop"] !== undefined && { stop: conditionManifest(o["stop"], at, noTasks(at)) }),
    ...(endWhen !== "stopped" && { endWhen }),
  };
}

/** Left out when not used, as `closing`. */
function retrying(o: RawOptions, where: string): Pick<DagSettings, "runRetry"> {
  const retries = atLeast(o, "runRetries", { min: 0, fallback: 0 }, where);
  const delayMs = duration(o, "runRetryDelay", 300_000, where);
  const from = choice(o, "runRetryFrom", ["failure", "start"], where);
  const idle = ["runRetryDelay", "runRetryFrom"].find((name) => o[name] !== undefined);
  if (retries === 0 && idle !== undefined)
    throw bad(`${where}: ${idle} needs runRetries: how many times a failed run is tried again`);
  return retries > 0 ? { runRetry: { retries, delayMs, from } } : {};
}

/** What only shows when options are seen side by side. */
function checkTogether(settings: DagSettings, where: string): void {
  const { schedule, start, end, catchup, maxActiveRuns, runTimeoutMs } = settings;
  if (start !== null && end !== null && start > end)
    throw bad(`${where}: end ${end} lies before start ${start}`);
  if (catchup && start === null) throw bad(`${where}: catchup needs a start to catch up from`);
  if (schedule.kind === "continuous" && maxActiveRuns !== 1) {
    throw bad(
      `${where}: a continuous schedule has one run at a time; leave maxActiveRuns out or set it to 1`,
    );
  }
  if (runTimeoutMs === 0) throw bad(`${where}: runTimeout must be more than 0; leave it out for none`);
}

function instant(value: unknown, where: string): string | null {
  if (value === undefined || value === null) return null;
  const iso = isoInstant(value);
  if (iso !== null) return iso;
  throw bad(`${where}: ${show(value)} is not a moment; give ${MOMENT_FORMS}`);
}

function tags(value: unknown, where: string): readonly string[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every((tag) => typeof tag === "string" && tag !== ""))
    return [...new Set(value)];
  throw bad(`${where}: tags must be an array of non-empty texts, got ${show(value)}`);
}

function standardSchema(value: unknown, where: string): StandardSchemaV1 | null {
  if (value === undefined) return null;
  if (isStandardSchema(value)) return value;
  throw bad(`${where}: params must be a Standard Schema validator, e.g. z.object({...}), got ${show(value)}`);
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}

/** The options of a DAG: types, defaults and checks. */

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

/**
 * The default validator of a DAG without `params`.
 * @example const options: DagOptions<NoSchema> = { schedule: "@daily" };
 */
export type NoSchema = StandardSchemaV1<AnyParams | undefined, AnyParams>;

/**
 * Options of a DAG; `S` is the validator given as `params`.
 * @see docs/guides/options.md
 * @example const options: DagOptions = { schedule: "@daily", start: "2027-01-01", catchup: true, defaults: { retries: 2 } };
 */
export interface DagOptions<S extends StandardSchemaV1 = NoSchema> {
  /**
   * When runs are created: `cron()`, `every()`, `dates()`, a list of these, `once()`, `continuous()`, `on()`, a
   * `Timetable`, a preset like "@daily", or null (default null).
   */
  readonly schedule?: ScheduleOption;
  /** The first logical date of the schedule; an ISO text needs "Z" or an offset. */
  readonly start?: Moment;
  /** The last logical date of the schedule. */
  readonly end?: Moment;
  /** Create the runs that were missed since `start` (default false). */
  readonly catchup?: boolean;
  /** Delay each scheduled run by a random time up to this limit; logical dates do not change (default none). */
  readonly jitter?: Duration;
  /** Pause the DAG after this many failed scheduled runs in a row (default never). */
  readonly pauseAfterFailures?: number;
  /** The maximum number of active runs of this DAG (default 16). */
  readonly maxActiveRuns?: number;
  /** The maximum number of active tasks per run (default 16). */
  readonly maxActiveTasks?: number;
  /** The maximum number of active tasks over all runs of the DAG (default none). */
  readonly maxActiveTasksPerDag?: number;
  /** The maximum duration of a run (default none). */
  readonly runTimeout?: Duration;
  /** How many times a failed run is retried as the same run (default 0). */
  readonly runRetries?: number;
  /** The delay before a retry of the run (default "5m"). */
  readonly runRetryDelay?: Duration;
  /**
   * What a retry of the run repeats: failed tasks and all downstream of them ("failure"), or everything ("start");
   * default "failure".
   */
  readonly runRetryFrom?: "failure" | "start";
  /** Actions if a run has not succeeded in time: one or several `deadline()`. */
  readonly deadline?: Deadline | readonly Deadline[];
  /** Closes the run when this condition becomes true: streaming tasks are stopped and rules no longer apply. */
  readonly stop?: ConditionPart;
  /**
   * What closes a run with streaming tasks or rules, besides `stop` and users: the end of all batch tasks
   * ("batchDone"), or nothing ("stopped"); default "stopped".
   */
  readonly endWhen?: "stopped" | "batchDone";
  /** Environment variables of tasks and callbacks: texts, `variable("key")`, `connection("id").host`. */
  readonly env?: Env;
  /** Default options of all tasks. */
  readonly defaults?: TaskDefaults<SchemaOutput<S>>;
  /** Validates the conf of a run into `ctx.params`: zod, valibot, arktype or any other Standard Schema. */
  readonly params?: S;
  readonly tags?: readonly string[];
  readonly owner?: string;
  readonly description?: string;
  /** Markdown for the UI. */
  readonly docs?: string;
  /** Functions to call and notices to send after a run has succeeded. */
  readonly onSuccess?: CallbackOption<Callback<SchemaOutput<S>>>;
  /** Functions to call and notices to send after a run has failed without a retry left. */
  readonly onFailure?: CallbackOption<Callback<SchemaOutput<S>>>;
}

/**
 * Options of a DAG that is scheduled on trigger events without a `params` schema of its own.
 * @example const options: EventDagOptions<FileEvent> = { schedule: on(new FileTrigger({ path: "/data/in/*.csv" })) };
 */
export interface EventDagOptions<Event>
  extends Omit<DagOptions<StandardSchemaV1<EventParams<Event>>>, "schedule" | "params"> {
  readonly schedule: EventSchedule<Event>;
  readonly params?: undefined;
}

/**
 * Options of a DAG that is scheduled on signals without a `params` schema of its own.
 * @example const options: SignalDagOptions<{ order: string }> = { schedule: on(signal<{ order: string }>("order.paid")) };
 */
export interface SignalDagOptions<Value>
  extends Omit<DagOptions<StandardSchemaV1<SignalParams<Value>>>, "schedule" | "params"> {
  readonly schedule: SignalSchedule<Value>;
  readonly params?: undefined;
}

/** The fields of a DAG's manifest that its options decide; the JSON Schema of the params is added on demand. */
export type DagSettings = Omit<DagManifest, "dagId" | "paramsSchema" | "tasks" | "groups">;

/** The callbacks of a DAG. */
export interface DagCallbacks {
  readonly onSuccess: readonly Callback<never>[];
  readonly onFailure: readonly Callback<never>[];
  readonly deadlines?: readonly Deadline[];
}

/** The options of a DAG, checked. */
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
  // Not null: an invalid start must not be reported as a missing one, too.
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
    // An invalid schedule must not cause further errors.
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

/** Schedules that create runs at known times. */
const BY_TIME = new Set<DagSettings["schedule"]["kind"]>([
  "once",
  "cron",
  "interval",
  "dates",
  "several",
  "timetable",
]);

/** Omitted if unused, like `closing`. */
function spreading(
  o: RawOptions,
  { kind }: DagSettings["schedule"],
  where: string,
): Pick<DagSettings, "jitterMs" | "pauseAfterFailures"> {
  const jitterMs = duration(o, "jitter", 0, where);
  const pauseAfterFailures = atLeast(o, "pauseAfterFailures", { min: 1, fallback: 0 }, where);
  if (jitterMs > 0 && !BY_TIME.has(kind))
    throw bad(`${where}: jitter needs a schedule by time, like cron() or every(), not "${kind}"`);
  if (pauseAfterFailures > 0 && !BY_TIME.has(kind) && kind !== "continuous")
    throw bad(
      `${where}: pauseAfterFailures counts scheduled runs, and a schedule of the kind "${kind}" creates none`,
    );
  return { ...(jitterMs > 0 && { jitterMs }), ...(pauseAfterFailures > 0 && { pauseAfterFailures }) };
}

/** Omitted if unused, so that the manifests of other DAGs do not change. */
function closing(o: RawOptions, where: string): Pick<DagSettings, "stop" | "endWhen"> {
  const at = `${where}: stop`;
  const endWhen = choice(o, "endWhen", ["stopped", "batchDone"], where);
  return {
    ...(o["stop"] !== undefined && { stop: conditionManifest(o["stop"], at, noTasks(at)) }),
    ...(endWhen !== "stopped" && { endWhen }),
  };
}

/** Omitted if unused, like `closing`. */
function retrying(o: RawOptions, where: string): Pick<DagSettings, "runRetry"> {
  const retries = atLeast(o, "runRetries", { min: 0, fallback: 0 }, where);
  const delayMs = duration(o, "runRetryDelay", 300_000, where);
  const from = choice(o, "runRetryFrom", ["failure", "start"], where);
  const idle = ["runRetryDelay", "runRetryFrom"].find((name) => o[name] !== undefined);
  if (retries === 0 && idle !== undefined)
    throw bad(`${where}: ${idle} needs runRetries: how many times a failed run is retried`);
  return retries > 0 ? { runRetry: { retries, delayMs, from } } : {};
}

/** Checks options against each other. */
function checkTogether(settings: DagSettings, where: string): void {
  const { schedule, start, end, catchup, maxActiveRuns, runTimeoutMs } = settings;
  if (start !== null && end !== null && start > end)
    throw bad(`${where}: end ${end} is before start ${start}`);
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

/** The options of a task: types, defaults and checks. */
import { type AnyAsset, assetManifests, type Producible } from "../asset/asset.ts";
import { isAccepted, orElse, refuse } from "../check/definition-errors.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import {
  atLeast,
  choice,
  definedOnly,
  duration,
  flag,
  func,
  INT32_MAX,
  knownOptions,
  text,
  wholeOrNull,
} from "../check/option-check.ts";
import { TASK_DEFAULT_NAMES, TASK_OPTION_NAMES } from "../check/option-names.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json, TaskManifest, TriggerRule, WeightRule } from "../manifest.ts";
import { type Deadline, deadlinesOf } from "../notify/deadline.ts";
import { type CallbackOption, callbackOptions } from "../notify/notice.ts";
import type { AnyParams, Callback, CancelCallback } from "../runtime/context.ts";
import type { Duration } from "../schedule/duration.ts";
import type { CronSchedule, IntervalSchedule } from "../schedule/schedule.ts";
import type { Upstream } from "./handle.ts";
import type { Env } from "./params/env.ts";
import type { TaskDrive } from "./plan.ts";
import type { Rule } from "./rule.ts";
import type { WeightFunction } from "./weight.ts";

/**
 * A memory limit in MB, or with a unit.
 * @example const memory: MemorySize[] = [512, "512mb", "2gb"];
 */
export type MemorySize = number | `${number}${"mb" | "gb"}`;

/**
 * Options that a DAG or a group sets for all its tasks.
 * @example dag("sales", { defaults: { retries: 3, retryDelay: "1m", pool: "warehouse" } satisfies TaskDefaults }, build);
 */
export interface TaskDefaults<Params = AnyParams> {
  /** How many times a failed task is retried (default 0). */
  readonly retries?: number;
  /** The delay before a retry (default "5m"). */
  readonly retryDelay?: Duration;
  /** The factor by which the delay grows at each retry; true doubles it (default false). */
  readonly retryBackoff?: boolean | number;
  /** The maximum delay before a retry. */
  readonly maxRetryDelay?: Duration;
  /** The maximum duration of one attempt. */
  readonly timeout?: Duration;
  /** The pool whose slots the task takes while it runs (default "default_pool"). */
  readonly pool?: string;
  /** The number of slots (default 1). */
  readonly poolSlots?: number;
  /** The weight of the task: ready tasks with a higher weight start first (default 1). */
  readonly priority?: number;
  /**
   * What is added to `priority`: the weights of all downstream tasks, of all upstream tasks, or nothing (default
   * "downstream"); a function returns the total weight.
   */
  readonly weightRule?: WeightRule | WeightFunction;
  /** The queue of the workers that may run the task (default "default"). */
  readonly queue?: string;
  /** The name of the configured executor that runs the task. */
  readonly executor?: string;
  /** Settings for the executor of the task, in its own terms; plain JSON. */
  readonly executorConfig?: Readonly<Record<string, unknown>>;
  /** "fresh" starts a new process for every attempt (default "warm"). */
  readonly isolation?: "warm" | "fresh";
  /** The memory limit of an attempt: MB, or "512mb", "2gb". */
  readonly memory?: MemorySize;
  /**
   * "allow" lets the task return while work that it started is still open, and cuts that work off; "fail" fails the try
   * (default "fail").
   */
  readonly openWork?: "fail" | "allow";
  /** Run only if the task succeeded or was skipped in the previous run. */
  readonly dependsOnPast?: boolean;
  /** Like `dependsOnPast`, for its direct downstream tasks as well. */
  readonly waitForDownstream?: boolean;
  /** The maximum number of running instances of this task over all runs of the DAG. */
  readonly maxActivePerDag?: number;
  /** The maximum number of running instances of this task per run. */
  readonly maxActivePerRun?: number;
  /** The grace period after a stop request, before the process is killed (default "10s"). */
  readonly grace?: Duration;
  /** The timeout of the operator's `onSignal` (default "30s"). */
  readonly onSignalTimeout?: Duration;
  /** Functions to call and notices to send after the task has succeeded. */
  readonly onSuccess?: CallbackOption<Callback<Params>>;
  /** Functions to call and notices to send after the task has failed without a retry left. */
  readonly onFailure?: CallbackOption<Callback<Params>>;
  /** Functions to call and notices to send after a try has failed and will be retried. */
  readonly onRetry?: CallbackOption<Callback<Params>>;
  /** Called if a wait of the task ends without its event: cancelled, cleared, marked or timed out. */
  readonly onCancel?: CancelCallback<Params>;
}

/**
 * Options of a task, besides `inputs` and `rule`.
 * @see docs/guides/options.md
 * @example const options: TaskOptions = { after: rows, timeout: "10m", retries: 3 };
 */
export interface TaskOptions<Params = AnyParams> extends TaskDefaults<Params> {
  /** Upstream tasks and groups whose outputs the task does not need. */
  readonly after?: Upstream | readonly Upstream[];
  /** Signal rules in the order in which they apply: `start()`, `restart()`, `stop()`. */
  readonly on?: Rule | readonly Rule[];
  /**
   * "streaming" for a task that runs until it is stopped and is restarted with a growing delay if it fails (default
   * "batch").
   */
  readonly lifetime?: "batch" | "streaming";
  /** Actions if the task has not succeeded in time: one or several `deadline()`. */
  readonly deadline?: Deadline | readonly Deadline[];
  /** Starts the task repeatedly while the run is active: a duration, `every()` or `cron()`. */
  readonly every?: Duration | CronSchedule | IntervalSchedule;
  /** The assets that the success of the task changes; `ctx.produce` adds payloads. */
  readonly produces?: readonly Producible[];
  /** The assets that the task reads, for documentation: the task does not wait for them. */
  readonly consumes?: readonly AnyAsset[];
  /** Environment variables that extend and override the DAG's `env`. */
  readonly env?: Env;
  /** Markdown for the UI. */
  readonly docs?: string;
}

/** A task's settings with all defaults filled in: the fields of its manifest that options decide. */
export type TaskSettings = Omit<
  TaskManifest,
  | "taskId"
  | "operator"
  | "upstream"
  | "inputs"
  | "group"
  | "role"
  | "map"
  | "teardown"
  | "startTrigger"
  | "reacts"
  | keyof TaskDrive
>;

export interface TaskCallbacks {
  readonly onSuccess: readonly Callback<never>[];
  readonly onFailure: readonly Callback<never>[];
  readonly onRetry: readonly Callback<never>[];
  readonly onCancel?: CancelCallback<never>;
  readonly deadlines?: readonly Deadline[];
  readonly weigh?: WeightFunction;
}

/** More than any task reaches, and a 32-bit integer even if some tries are added. */
const UNLIMITED_RETRIES = 1_000_000_000;

/** It is stored with each waiting attempt. */
const CONFIG_BYTES = 65_536;

/** Options as they arrive at run time: each may be missing or invalid. */
export type RawOptions = Readonly<Record<string, unknown>>;

export const RULES: readonly TriggerRule[] = [
  "allSuccess",
  "allFailed",
  "allDone",
  "allDoneMinOneSuccess",
  "allDoneSetupSuccess",
  "oneSuccess",
  "oneFailed",
  "oneDone",
  "noneFailed",
  "noneFailedMinOneSuccess",
  "noneSkipped",
  "allSkipped",
  "always",
];

/** A streaming task is restarted at once, with a growing delay. */
const STREAMING: RawOptions = {
  retries: UNLIMITED_RETRIES,
  retryDelay: "1s",
  retryBackoff: true,
  maxRetryDelay: "1m",
};

/**
 * Checks the `defaults` of a DAG or group. Returns none if one is invalid, because each task would be rejected for it.
 */
export function checkDefaults(given: unknown, where: string): RawOptions {
  const at = `${where}: defaults`;
  const defaults = knownOptions(given, TASK_DEFAULT_NAMES, at, "defaults");
  return isAccepted(() => [taskSettings([defaults], at), taskTimes(defaults, at)]) ? defaults : {};
}

/** The time limits of a task with signal rules. */
export function taskTimes(o: RawOptions, where: string): Pick<TaskDrive, "graceMs" | "onSignalTimeoutMs"> {
  const graceMs = duration(o, "grace", undefined, where);
  const onSignalTimeoutMs = duration(o, "onSignalTimeout", undefined, where);
  return {
    ...(graceMs !== undefined && { graceMs }),
    ...(onSignalTimeoutMs !== undefined && { onSignalTimeoutMs }),
  };
}

/** Checks the names of a task's options; `extra` names the options of its kind. */
export function checkTaskOptions(options: unknown, extra: readonly string[], where: string): RawOptions {
  return knownOptions(options, [...TASK_OPTION_NAMES, ...extra], where, "task");
}

/** The settings of a task from its options and the surrounding defaults, outermost first. */
export function taskSettings(layers: readonly RawOptions[], where: string): TaskSettings {
  const given: RawOptions = Object.assign({}, ...layers.map(definedOnly));
  const o = given["lifetime"] === "streaming" ? { ...STREAMING, ...given } : given;
  const timeoutMs = duration(o, "timeout", null, where);
  if (timeoutMs === 0) {
    const message = `${where}: timeout must be more than 0; leave it out for none`;
    refuse(new DagDefinitionError("TW_BAD_DURATION", message));
  }
  const waitForDownstream = flag(o, "waitForDownstream", where);
  const deadlines = orElse(() => deadlinesOf(o["deadline"], where), undefined);
  const config = orElse(() => executorConfig(o["executorConfig"], where), undefined);
  const { callbacks, notices } = callbackOptions(o, where);
  // Not part of the manifest: each wait stores whether it has a hook.
  func(o, "onCancel", where);
  return {
    rule: choice(o, "rule", RULES, where),
    retries: atLeast(o, "retries", { min: 0, fallback: 0 }, where),
    retryDelayMs: duration(o, "retryDelay", 300_000, where),
    retryBackoff: orElse(() => backoff(o["retryBackoff"], where), 1),
    maxRetryDelayMs: duration(o, "maxRetryDelay", null, where),
    timeoutMs,
    memoryMb: orElse(() => memoryMb(o["memory"], where), null),
    pool: text(o, "pool", where) ?? "default_pool",
    poolSlots: atLeast(o, "poolSlots", { min: 1, fallback: 1 }, where),
    priority: atLeast(o, "priority", { min: -INT32_MAX, fallback: 1 }, where),
    weightRule: weightRule(o, where),
    queue: text(o, "queue", where) ?? "default",
    executor: text(o, "executor", where),
    isolation: choice(o, "isolation", ["warm", "fresh"], where),
    dependsOnPast: flag(o, "dependsOnPast", where) || waitForDownstream,
    waitForDownstream,
    maxActivePerDag: wholeOrNull(o, "maxActivePerDag", where),
    maxActivePerRun: wholeOrNull(o, "maxActivePerRun", where),
    callbacks,
    ...notices,
    docs: text(o, "docs", where),
    ...(choice(o, "openWork", ["fail", "allow"], where) === "allow" && { openWork: "allow" }),
    ...(config !== undefined && { executorConfig: config }),
    ...(deadlines && { deadlines: deadlines.map(({ manifest }) => manifest) }),
    ...orElse(() => lineage(o, where), {}),
  };
}

/** Omitted if unused, so that the manifests of tasks without assets do not change. */
function lineage(o: RawOptions, where: string): Pick<TaskSettings, "produces" | "consumes"> {
  const of = (name: "produces" | "consumes") =>
    o[name] === undefined ? [] : assetManifests(o[name], `${where}: ${name}`);
  const [produces, consumes] = [of("produces"), of("consumes")];
  return { ...(produces.length > 0 && { produces }), ...(consumes.length > 0 && { consumes }) };
}

/** The result of a function is the total weight: nothing is added to it. */
function weightRule(o: RawOptions, where: string): WeightRule {
  if (typeof o["weightRule"] === "function") return "absolute";
  return choice(o, "weightRule", ["downstream", "absolute", "upstream"], where);
}

/** The effective callbacks of a task. */
export function taskCallbacks(layers: readonly RawOptions[], where: string): TaskCallbacks {
  const given = Object.assign({}, ...layers.map(definedOnly));
  const { onCancel }: Pick<TaskCallbacks, "onCancel"> = given;
  const { functions } = callbackOptions<Callback<never>>(given, where);
  const deadlines = orElse(() => deadlinesOf(given.deadline, where), undefined);
  const weigh = typeof given.weightRule === "function" ? { weigh: given.weightRule as WeightFunction } : {};
  return {
    ...functions,
    ...(onCancel && { onCancel }),
    ...(deadlines && { deadlines }),
    ...weigh,
  };
}

function backoff(value: unknown, where: string): number {
  if (value === undefined || value === false) return 1;
  if (value === true) return 2;
  if (typeof value === "number" && value >= 1 && value <= 1_000) return value;
  throw new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where}: retryBackoff must be true (doubles the delay) or a factor from 1 to 1000, got ${show(value)}`,
  );
}

/** The executor checks the content. */
function executorConfig(value: unknown, where: string): TaskManifest["executorConfig"] {
  if (value === undefined) return undefined;
  const bad = (message: string) => new DagDefinitionError("TW_BAD_OPTION", `${where}: ${message}`);
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad(`executorConfig must be an object, got ${show(value)}`);
  const copy = jsonCopy(value, { root: "executorConfig", notJson: bad, tooLarge: bad }, CONFIG_BYTES);
  return copy as Readonly<Record<string, Json>>;
}

function memoryMb(value: unknown, where: string): number | null {
  if (value === undefined) return null;
  const match = typeof value === "string" ? /^(\d+(?:\.\d+)?)(mb|gb)$/.exec(value) : null;
  const mb = match ? Number(match[1]) * (match[2] === "gb" ? 1024 : 1) : value;
  if (typeof mb === "number" && mb >= 1 && mb <= INT32_MAX) return Math.ceil(mb);
  throw new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where}: memory must be a number of MB, "512mb" or "2gb", got ${show(value)}`,
  );
}

/** The options of a task: their types, their defaults and the checks that make a bad one fail at definition. */
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
import type { TaskManifest, TriggerRule, WeightRule } from "../manifest.ts";
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

/** Memory in MB, or with a unit. */
export type MemorySize = number | `${number}${"mb" | "gb"}`;

/** Options that a DAG or a group may set for all its tasks. `rule` is not among them: it changes the inputs' types. */
export interface TaskDefaults<Params = AnyParams> {
  /** How many times a failed task is tried again (0). */
  readonly retries?: number;
  /** The wait before a retry ("5m"). */
  readonly retryDelay?: Duration;
  /** Multiplies the wait at each retry: true doubles it (false). */
  readonly retryBackoff?: boolean | number;
  /** The longest wait before a retry. */
  readonly maxRetryDelay?: Duration;
  /** The longest time one attempt may run. */
  readonly timeout?: Duration;
  /** The pool whose slots the task takes while it runs ("default_pool"). */
  readonly pool?: string;
  /** How many slots of the pool (1). */
  readonly poolSlots?: number;
  /** Its own weight: of the tasks that are ready, the highest goes first (1). */
  readonly priority?: number;
  /**
   * What is added to its own weight: nothing, that of all downstream tasks, or of all upstream tasks ("downstream"). A
   * function answers the weight itself; it is asked once, when the DAG is complete.
   */
  readonly weightRule?: WeightRule | WeightFunction;
  /** Which workers may run it ("default"). */
  readonly queue?: string;
  /** Which of the configured executors runs it. */
  readonly executor?: string;
  /** "fresh": a process of its own for every attempt ("warm"). */
  readonly isolation?: "warm" | "fresh";
  /** The memory limit of an attempt: MB, or "512mb", "2gb". */
  readonly memory?: MemorySize;
  /**
   * "allow": it may return while work that it started is still open; the work is cut off. By default that fails the
   * try ("fail").
   */
  readonly openWork?: "fail" | "allow";
  /** Runs only if it succeeded or was skipped in the previous run. */
  readonly dependsOnPast?: boolean;
  /** As `dependsOnPast`, and its direct downstream tasks too. */
  readonly waitForDownstream?: boolean;
  /** Instances of this task running at once, over all runs of the DAG. */
  readonly maxActivePerDag?: number;
  /** Instances of this task running at once within one run. */
  readonly maxActivePerRun?: number;
  /** How long it may take to end when it is stopped, before its process is killed ("10s"). */
  readonly grace?: Duration;
  /** How long the `onSignal` of its operator may take to answer; then it has failed on the signal ("30s"). */
  readonly onSignalTimeout?: Duration;
  /** Functions to call, and notices to send, when it has succeeded. */
  readonly onSuccess?: CallbackOption<Callback<Params>>;
  /** The same when it has failed and no retry is left. */
  readonly onFailure?: CallbackOption<Callback<Params>>;
  /** The same when a try has failed and another follows. */
  readonly onRetry?: CallbackOption<Callback<Params>>;
  /** Called when a wait of the task ends without its event: cancelled, cleared, marked, out of time. */
  readonly onCancel?: CancelCallback<Params>;
}

/** Options of a task, besides `inputs` and `rule`, whose types are inferred. */
export interface TaskOptions<Params = AnyParams> extends TaskDefaults<Params> {
  /** Tasks and groups to come after, without taking their outputs. */
  readonly after?: Upstream | readonly Upstream[];
  /** What it does on signals: `start()`, `restart()`, `stop()`, in the order in which they act. */
  readonly on?: Rule | readonly Rule[];
  /**
   * "streaming": it runs until it is stopped; when it fails it is started again, after 1 s, then 2 s, up to a minute,
   * as often as it takes unless `retries` says otherwise ("batch").
   */
  readonly lifetime?: "batch" | "streaming";
  /** By when it has to have succeeded, counted by its run, and who is told when it has not: one or several. */
  readonly deadline?: Deadline | readonly Deadline[];
  /** Starts it again and again while the run is running: a distance, `every()` or `cron()`. */
  readonly every?: Duration | CronSchedule | IntervalSchedule;
  /** What its success changes: one event each, or those that it tells with `ctx.produce`. */
  readonly produces?: readonly Producible[];
  /** What it reads, for people to see: nothing waits for it. */
  readonly consumes?: readonly AnyAsset[];
  /** Environment variables, in addition to those of the DAG's `env`; of the same name, these win. */
  readonly env?: Env;
  /** Markdown, shown in the UI. */
  readonly docs?: string;
}

/** A task's settings with all defaults filled in: the part of its manifest that options decide. */
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

/** More than any task reaches, and still a whole number of 32 bits when some tries are added. */
const UNLIMITED_RETRIES = 1_000_000_000;

/** Options as they arrive at run time: any may be missing or wrong. */
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

/** A streaming task is started again at once, but not in a circle. */
const STREAMING: RawOptions = {
  retries: UNLIMITED_RETRIES,
  retryDelay: "1s",
  retryBackoff: true,
  maxRetryDelay: "1m",
};

/** Checks the `defaults` of a DAG or group. None remain if one is wrong: each task would be refused for it. */
export function checkDefaults(given: unknown, where: string): RawOptions {
  const at = `${where}: defaults`;
  const defaults = knownOptions(given, TASK_DEFAULT_NAMES, at, "defaults");
  return isAccepted(() => [taskSettings([defaults], at), taskTimes(defaults, at)]) ? defaults : {};
}

/** Times of a task that is driven by signals. */
export function taskTimes(o: RawOptions, where: string): Pick<TaskDrive, "graceMs" | "onSignalTimeoutMs"> {
  const graceMs = duration(o, "grace", undefined, where);
  const onSignalTimeoutMs = duration(o, "onSignalTimeout", undefined, where);
  return {
    ...(graceMs !== undefined && { graceMs }),
    ...(onSignalTimeoutMs !== undefined && { onSignalTimeoutMs }),
  };
}

/** Checks the names of a task's options; `extra` names those of its kind. */
export function checkTaskOptions(options: unknown, extra: readonly string[], where: string): RawOptions {
  return knownOptions(options, [...TASK_OPTION_NAMES, ...extra], where, "task");
}

/** The settings of a task from its options and the defaults around it, outermost first. */
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
  const { callbacks, notices } = callbackOptions(o, where);
  // Not part of the manifest: each wait says whether there is one.
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
    ...(deadlines && { deadlines: deadlines.map(({ manifest }) => manifest) }),
    ...orElse(() => lineage(o, where), {}),
  };
}

/** Left out when there is nothing to say: the manifest of a task without assets is the same as ever. */
function lineage(o: RawOptions, where: string): Pick<TaskSettings, "produces" | "consumes"> {
  const of = (name: "produces" | "consumes") =>
    o[name] === undefined ? [] : assetManifests(o[name], `${where}: ${name}`);
  const [produces, consumes] = [of("produces"), of("consumes")];
  return { ...(produces.length > 0 && { produces }), ...(consumes.length > 0 && { consumes }) };
}

/** A function's answer is the weight, and nothing is added to it. */
function weightRule(o: RawOptions, where: string): WeightRule {
  if (typeof o["weightRule"] === "function") return "absolute";
  return choice(o, "weightRule", ["downstream", "absolute", "upstream"], where);
}

/** The callbacks that are in force for a task. */
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

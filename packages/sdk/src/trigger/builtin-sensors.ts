/**
 * A sensor for every built-in trigger: one object has the options of the trigger and of the sensor. In the default mode
 * "defer" no worker is needed; in the other modes a worker polls.
 */

import { attemptFacts } from "../author/call-context.ts";
import { DagDefinitionError } from "../check/errors.ts";
import type { RunContext, TaskContext } from "../runtime/context.ts";
import { durationMs } from "../schedule/duration.ts";
import type { Moment } from "../schedule/instant.ts";
import { fail } from "../signal/control.ts";
import type { TriggerPlace } from "./builtin-trigger.ts";
import type {
  DagRunEvent,
  DateTimeArgs,
  ExternalTaskEvent,
  FileEvent,
  HttpEvent,
  MomentEvent,
  ProcessEvent,
  RedisKeyEvent,
  RedisStreamEvent,
  S3KeyEvent,
  S3PrefixEvent,
  SqlEvent,
  WebhookEvent,
} from "./builtin-triggers.ts";
import type { StartFrom } from "./deferral.ts";
import { DateTimeTrigger, type TimeDeltaOptions, TimeDeltaTrigger } from "./moment-triggers.ts";
import {
  type DagRunOfOptions,
  DagRunTrigger,
  type ExternalTaskOfOptions,
  ExternalTaskTrigger,
  type WebhookOptions,
  WebhookTrigger,
  type WhichRun,
} from "./run-triggers.ts";
import { type Found, Sensor, type SensorOptions } from "./sensor.ts";
import {
  type FileOptions,
  FileTrigger,
  type HttpOptions,
  HttpTrigger,
  type ProcessOptions,
  ProcessTrigger,
  type RedisKeyOptions,
  RedisKeyTrigger,
  type RedisStreamOptions,
  RedisStreamTrigger,
  type S3KeyOptions,
  S3KeyTrigger,
  type S3PrefixOptions,
  S3PrefixTrigger,
  type SqlOptions,
  SqlTrigger,
} from "./service-triggers.ts";
import { serialise, type Waitable } from "./waitable.ts";

/**
 * A moment, or a function of the run that returns it.
 * @example const moment: MomentOfRun = (run) => new Date(run.runAfter.getTime() + 3_600_000);
 */
export type MomentOfRun = Moment | ((run: RunContext) => Moment);

/** A sensor whose trigger does not depend on the run. */
abstract class StaticSensor<Options extends object, Event> extends Sensor<Options, Event> {
  abstract override trigger(): Waitable<Event>;

  override startFrom(): StartFrom<Event> | null {
    return this.startFromTrigger(() => this.trigger());
  }

  /** The options of its trigger. */
  protected options(): Options {
    return triggerOptions(this.args as Options & SensorOptions);
  }
}

/** A {@link StaticSensor} whose trigger polls at the interval of the sensor. */
abstract class PollingSensor<Options extends object, Event> extends StaticSensor<Options, Event> {
  protected override options(): Options {
    const { interval } = this.args as SensorOptions;
    return { ...super.options(), interval };
  }
}

function triggerOptions<Options extends object>(args: Options & SensorOptions): Options {
  const { mode, interval, timeout, softFail, exponentialBackoff, ...options } = args;
  return options as unknown as Options;
}

/**
 * Waits for a moment; the output is that moment as an ISO text.
 * @example d.operator("evening", new DateTimeSensor({ moment: (run) => new Date(run.runAfter.getTime() + 3_600_000) }));
 */
export class DateTimeSensor extends Sensor<{ readonly moment: MomentOfRun }, MomentEvent> {
  override trigger({ run }: { readonly run: RunContext }) {
    const { moment } = this.args;
    return new DateTimeTrigger({ moment: typeof moment === "function" ? moment(run) : moment });
  }

  /** Compares with the clock, without the trigger. */
  override poke(ctx: TaskContext): Found<MomentEvent> {
    const { moment } = serialise(this.trigger(ctx)).args as unknown as DateTimeArgs;
    return Date.now() >= Date.parse(moment) && moment;
  }

  override startFrom() {
    const { moment } = this.args;
    return typeof moment === "function" ? null : this.startFromTrigger(() => new DateTimeTrigger({ moment }));
  }
}

/**
 * Waits for a duration from its first start; the output is the end of the wait as an ISO text.
 * @example d.operator("cool_down", new TimeDeltaSensor({ delta: "2h" }));
 */
export class TimeDeltaSensor extends StaticSensor<TimeDeltaOptions, MomentEvent> {
  override trigger() {
    return new TimeDeltaTrigger(this.options());
  }

  /** The trigger would count from each poll. */
  override poke(ctx: TaskContext): Found<MomentEvent> {
    const isOver = attemptFacts(ctx).elapsedMs() >= durationMs(this.args.delta, "TimeDeltaSensor: delta");
    return isOver && new Date().toISOString();
  }
}

/**
 * Waits for a file; the output has its path, size and time.
 * @example d.operator("file", new FileSensor({ path: "/data/in/sales-*.csv", timeout: "6h", softFail: true }));
 */
export class FileSensor extends PollingSensor<FileOptions, FileEvent> {
  override trigger() {
    return new FileTrigger(this.options());
  }
}

/**
 * Waits for an HTTP response with the wanted status or JSON value; the output is the response.
 * @example d.operator("ready", new HttpSensor({ url: "https://jobs.example/7", json: { path: "state", equals: "done" }, interval: "30s" }));
 */
export class HttpSensor extends PollingSensor<HttpOptions, HttpEvent> {
  override trigger() {
    return new HttpTrigger(this.options());
  }
}

/**
 * Waits until a query returns a truthy value; the output has the row.
 * @example d.operator("loaded", new SqlSensor({ connection: "warehouse", query: "SELECT count(*) FROM sales" }));
 */
export class SqlSensor extends PollingSensor<SqlOptions, SqlEvent> {
  override trigger() {
    return new SqlTrigger(this.options());
  }
}

/**
 * The run that a sensor waits for: by id or logical date (default: the logical date of its own run).
 * @example const run: RunOfSensor = { logicalDate: (own) => own.logicalDate ?? own.runAfter };
 */
export interface RunOfSensor extends TriggerPlace {
  readonly runId?: string;
  readonly logicalDate?: MomentOfRun;
}

/**
 * Waits for a task of another DAG, by default in the run with the same logical date.
 * @example d.operator("sales", new ExternalTaskSensor({ dagId: "sales", taskId: "load" }));
 */
export class ExternalTaskSensor extends Sensor<ExternalTaskOfOptions & RunOfSensor, ExternalTaskEvent> {
  override trigger({ run }: { readonly run: RunContext }) {
    return new ExternalTaskTrigger({ ...withoutRun(this.args), ...whichRun(this.args, run) });
  }

  override startFrom() {
    const which = fixedRun(this.args);
    const options = withoutRun(this.args);
    return which && this.startFromTrigger(() => new ExternalTaskTrigger({ ...options, ...which }));
  }
}

/**
 * Waits for a run of another DAG, by default the run with the same logical date.
 * @example d.operator("sales", new DagRunSensor({ dagId: "sales", states: ["success"] }));
 */
export class DagRunSensor extends Sensor<DagRunOfOptions & RunOfSensor, DagRunEvent> {
  override trigger({ run }: { readonly run: RunContext }) {
    return new DagRunTrigger({ ...withoutRun(this.args), ...whichRun(this.args, run) });
  }

  override startFrom() {
    const which = fixedRun(this.args);
    const options = withoutRun(this.args);
    return which && this.startFromTrigger(() => new DagRunTrigger({ ...options, ...which }));
  }
}

function withoutRun<Args extends RunOfSensor>(
  args: Args & SensorOptions,
): Omit<Args, "runId" | "logicalDate"> {
  const { runId, logicalDate, ...options } = triggerOptions<Args>(args);
  return options;
}

/** The run, if it does not depend on the waiting run. */
function fixedRun({ runId, logicalDate }: RunOfSensor): WhichRun | null {
  if (runId !== undefined && logicalDate !== undefined) {
    throw new DagDefinitionError("TW_BAD_OPTION", "a sensor takes either runId or logicalDate");
  }
  if (runId !== undefined) return { runId };
  return logicalDate === undefined || typeof logicalDate === "function" ? null : { logicalDate };
}

function whichRun(args: RunOfSensor, run: RunContext): WhichRun {
  const { logicalDate } = args;
  const found = typeof logicalDate === "function" ? logicalDate(run) : run.logicalDate;
  const which = fixedRun(args) ?? (found === null ? null : { logicalDate: found });
  if (which !== null) return which;
  throw fail("this run has no logical date to look for; give the sensor a runId or a logicalDate");
}

/**
 * Waits for an object in S3; the output has its key, size and time.
 * @example d.operator("export", new S3KeySensor({ bucket: "exports", key: "sales/*.parquet", wildcard: true, connection: "s3" }));
 */
export class S3KeySensor extends PollingSensor<S3KeyOptions, S3KeyEvent> {
  override trigger() {
    return new S3KeyTrigger(this.options());
  }
}

/**
 * Waits for objects in S3 whose keys have a prefix; the output has the keys.
 * @example d.operator("parts", new S3PrefixSensor({ bucket: "exports", prefix: "sales/", minCount: 24 }));
 */
export class S3PrefixSensor extends PollingSensor<S3PrefixOptions, S3PrefixEvent> {
  override trigger() {
    return new S3PrefixTrigger(this.options());
  }
}

/**
 * Waits for a key in Redis; the output has its value.
 * @example d.operator("released", new RedisKeySensor({ connection: "cache", key: "release:42" }));
 */
export class RedisKeySensor extends PollingSensor<RedisKeyOptions, RedisKeyEvent> {
  override trigger() {
    return new RedisKeyTrigger(this.options());
  }
}

/**
 * Waits for an entry of a Redis stream, which is the output.
 * @example d.operator("order", new RedisStreamSensor({ connection: "bus", stream: "orders", from: "0" }));
 */
export class RedisStreamSensor extends StaticSensor<RedisStreamOptions, RedisStreamEvent> {
  override trigger() {
    return new RedisStreamTrigger(this.options());
  }
}

/**
 * Waits for the end of a process on the triggerer's machine.
 * @example d.operator("exported", new ProcessSensor({ pid: 4711, queue: "etl-host" }));
 */
export class ProcessSensor extends StaticSensor<ProcessOptions, ProcessEvent> {
  override trigger() {
    return new ProcessTrigger(this.options());
  }
}

/**
 * Waits for a call of a webhook; the output is the request.
 * @example d.operator("approval", new WebhookSensor({ name: "approvals", timeout: "2d" }));
 */
export class WebhookSensor extends StaticSensor<WebhookOptions, WebhookEvent> {
  override trigger() {
    return new WebhookTrigger(this.options());
  }
}

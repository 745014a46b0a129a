/**
 * Sensors: operators that wait until a condition is met. The mode decides what polls: a process that stays ("poke"), a
 * process that is started again ("reschedule"), or a trigger without a process ("defer").
 */
import { attemptFacts } from "../author/call-context.ts";
import { DagDefinitionError, TaskError } from "../check/errors.ts";
import { choice, flag } from "../check/option-check.ts";
import { durationText } from "../check/wording.ts";
import type { TaskContext } from "../runtime/context.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { type Control, rescheduled, skip } from "../signal/control.ts";
import { type Deferred, deferred, type StartFrom } from "./deferral.ts";
import { Operator } from "./operator.ts";
import { sleep } from "./sleep.ts";
import { serialise, type Waitable } from "./waitable.ts";

/**
 * Options of every sensor, next to its own arguments.
 * @example const options: SensorOptions = { mode: "reschedule", interval: "1m", timeout: "6h", softFail: true };
 */
export interface SensorOptions {
  /**
   * What polls: a process ("poke"), a restarted process ("reschedule") or a trigger (default "defer" with a trigger,
   * otherwise "poke").
   */
  readonly mode?: "poke" | "reschedule" | "defer";
  /** The time between two polls (default "10s"). */
  readonly interval?: Duration;
  /**
   * The maximum duration from the first start of the try, including waits, after which it fails without a retry
   * (default "7d").
   */
  readonly timeout?: Duration;
  /** Skip the task instead of failing it after the timeout (default false). */
  readonly softFail?: boolean;
  /** Double the interval after each poll, up to an hour (default false; not in mode "defer"). */
  readonly exponentialBackoff?: boolean;
}

/**
 * The arguments of a sensor: its own and the {@link SensorOptions}.
 * @example const args: SensorArgs<{ table: string }> = { table: "sales", interval: "1m" };
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a parameter of type void may be left out.
export type SensorArgs<Args> = [Args] extends [void] ? SensorOptions | void : Args & SensorOptions;

const LONGEST_INTERVAL_MS = 3_600_000;

/**
 * An operator that waits until `poke` finds a value, or until its trigger fires; that value is the output.
 *
 * @example
 * ```ts
 * class RowsArrived extends Sensor<{ table: string }, number> {
 *   async poke(ctx: TaskContext) {
 *     const rows = countRows(await ctx.connection("warehouse"), this.args.table);
 *     return rows > 0 && rows;
 *   }
 * }
 * const rows = d.operator("rows", new RowsArrived({ table: "sales", interval: "1m", mode: "reschedule" })); // Output<number>
 * ```
 */
export abstract class Sensor<Args = void, Value = true> extends Operator<SensorArgs<Args>, Value> {
  readonly #settings: SensorSettings;

  constructor(args: SensorArgs<Args>) {
    super(args);
    this.#settings = settings((args ?? {}) as SensorOptions, this);
  }

  /** The trigger to wait for in mode "defer"; its event is the output. */
  trigger?(ctx: TaskContext): Waitable<Value>;

  /** Polls once and returns the value, or undefined or false for "not yet". By default, it checks the trigger. */
  poke(ctx: TaskContext): Found<Value> | Promise<Found<Value>> {
    // Without a trigger there is a poke: the constructor checks it.
    const call = serialise(this.trigger!(ctx));
    return attemptFacts(ctx).host.check(call) as Promise<Found<Value>>;
  }

  override async execute(ctx: TaskContext): Promise<Value | Control | Deferred> {
    const { mode, intervalMs, backoff } = this.#settings;
    const { elapsedMs } = attemptFacts(ctx);
    const leftMs = () => Math.max(0, this.#settings.timeoutMs - elapsedMs());
    if (mode === "defer") {
      return deferred({ ...this.waitOptions(leftMs()), trigger: this.trigger!(ctx), method: "fired" });
    }
    for (;;) {
      const found = await this.poke(ctx);
      if (found !== undefined && found !== false) return found as Value | Control;
      if (leftMs() === 0) return this.#timedOut();
      // With pauses of 1, 2, 4 ... intervals the next one is the sum of all before it, plus one interval.
      const pauseMs = backoff
        ? Math.min(intervalMs + elapsedMs(), Math.max(intervalMs, LONGEST_INTERVAL_MS))
        : intervalMs;
      const untilMs = Math.ceil(Math.min(pauseMs, leftMs()));
      if (mode === "reschedule") return rescheduled(untilMs) as never;
      await sleep(untilMs, ctx.abort);
      ctx.abort.throwIfAborted();
    }
  }

  /** The method that resumes after the trigger has fired. */
  fired(_ctx: TaskContext, event: Value): Value | Control | Promise<Value | Control> {
    return event;
  }

  /** The start wait of a sensor whose trigger does not depend on its run; null if it does not defer. */
  protected startFromTrigger(trigger: () => Waitable<Value>): StartFrom<Value> | null {
    const { mode, timeoutMs } = this.#settings;
    return mode === "defer" ? { ...this.waitOptions(timeoutMs), trigger: trigger() } : null;
  }

  protected waitOptions(timeoutMs: number): { timeout: Duration; onTimeout: "skip" | "fatal" } {
    return { timeout: timeoutMs, onTimeout: this.#settings.softFail ? "skip" : "fatal" };
  }

  #timedOut(): Control {
    const problem = `${this.constructor.name} found nothing within ${durationText(this.#settings.timeoutMs)}`;
    if (this.#settings.softFail) return skip(problem);
    throw new TaskError("TW_SENSOR_TIMEOUT", problem);
  }
}

/**
 * The result of a poll: a value, {@link skip} or {@link fail}, or undefined or false for "not yet".
 * @example const found = (rows: number): Found<number> => rows > 0 && rows;
 */
export type Found<Value> = Value | Control | undefined | false;

interface SensorSettings {
  readonly mode: "poke" | "reschedule" | "defer";
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly softFail: boolean;
  readonly backoff: boolean;
}

function settings(given: SensorOptions, sensor: Sensor<unknown, unknown>): SensorSettings {
  const where = `sensor ${sensor.constructor.name}`;
  const o = given as Readonly<Record<string, unknown>>;
  const hasTrigger = typeof sensor.trigger === "function";
  const mode = choice(
    o,
    "mode",
    hasTrigger ? ["defer", "poke", "reschedule"] : ["poke", "reschedule", "defer"],
    where,
  );
  const lacks =
    !hasTrigger && (mode === "defer" ? "trigger()" : sensor.poke === Sensor.prototype.poke && "poke()");
  if (lacks)
    throw new DagDefinitionError("TW_BAD_OPTION", `${where}: mode "${mode}" needs a ${lacks} method`);
  const intervalMs = Math.max(1, durationMs(given.interval ?? "10s", `${where}: interval`));
  const timeoutMs = Math.max(1, durationMs(given.timeout ?? "7d", `${where}: timeout`));
  const [softFail, backoff] = [flag(o, "softFail", where), flag(o, "exponentialBackoff", where)];
  return { mode, intervalMs, timeoutMs, softFail, backoff };
}

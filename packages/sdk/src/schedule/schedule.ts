/**
 * When runs of a DAG are made. Values only: the scheduler does the arithmetic. The checks here are the cheap ones
 * (number of fields, known time zone); the engine's cron parser has the last word when the bundle is loaded.
 */
import { ASSET_NAMESPACE, type AssetEvent, type AssetParams } from "../asset/asset.ts";
import { checkedPath, hasReference } from "../author/params/conf-reference.ts";
import { signalParams } from "../author/params/signal-params.ts";
import { DagDefinitionError, show, TriggerError } from "../check/errors.ts";
import { knownOptions } from "../check/option-check.ts";
import type { StandardSchemaV1 } from "../check/standard-schema.ts";
import type { MomentSchedule, ScheduleManifest, SignalCondition } from "../manifest.ts";
import type { SignalEvent } from "../trigger/builtin-triggers.ts";
import { observedKinds } from "../trigger/joint-trigger.ts";
import { callAtDefinition, isWaitable, type WaitableJson } from "../trigger/waitable.ts";
import { type AssetScheduleOptions, onAssets } from "./asset-schedule.ts";
import {
  type Condition,
  conditionManifest,
  isCondition,
  leavesOf,
  noTasks,
  type TimePart,
} from "./condition.ts";
import { type Duration, durationMs } from "./duration.ts";
import { isoInstant, MOMENT_FORMS, type Moment } from "./instant.ts";
import { isTimetable, TIMETABLE, type Timetable } from "./timetable.ts";

/** What {@link cron}, {@link every}, {@link dates}, {@link once}, {@link continuous} and {@link on} return. */
export type Schedule = Exclude<ScheduleManifest, { kind: "several" | "timetable" }>;

/** What {@link cron} returns. */
export type CronSchedule = Extract<Schedule, { kind: "cron" }>;

/** What {@link every} returns. */
export type IntervalSchedule = Extract<Schedule, { kind: "interval" }>;

/** What {@link dates} returns. */
export type DatesSchedule = Extract<Schedule, { kind: "dates" }>;

declare const EVENT: unique symbol;

/** What {@link on} returns: a schedule whose runs have an event of that type in their conf. */
export type EventSchedule<Event> = Extract<Schedule, { kind: "trigger" }> & { readonly [EVENT]?: Event };

/** The params of a DAG that runs on events; a run that somebody starts by hand may have none. */
export interface EventParams<Event> {
  readonly event?: Event;
}

declare const SIGNALS: unique symbol;

/** What {@link on} returns for a condition on signals. */
export type SignalSchedule<Value> = Extract<Schedule, { kind: "signal" }> & { readonly [SIGNALS]?: Value };

/** The params of a DAG that runs on signals or assets; a run that somebody starts by hand may have none. */
export type SignalParams<Value> = [Value] extends [AssetEvent<unknown>]
  ? AssetParams<Value>
  : {
      /** The signal that made the condition true. */
      readonly signal?: SignalEvent<Value>;
      /** Of a condition with all(): the signals that made it true, by key. */
      readonly signals?: Readonly<Record<string, SignalEvent<Value>>>;
    };

export interface RouteOptions {
  /**
   * A path into the signal's value, like "order.id": what is there names the run, and while there is a run of that name
   * no second one is made.
   */
  readonly route?: string;
}

/** Short names for the common schedules, all in UTC. */
export type SchedulePreset =
  | "@once"
  | "@continuous"
  | "@hourly"
  | "@daily"
  | "@midnight"
  | "@weekly"
  | "@monthly"
  | "@quarterly"
  | "@yearly"
  | "@annually";

type ScheduleText = SchedulePreset | (string & NonNullable<unknown>);

/**
 * Everything that a DAG's `schedule` option takes; a string is a preset or a cron expression in UTC. A list: one run at
 * each moment that any of its schedules names.
 */
export type ScheduleOption =
  | Schedule
  | ScheduleText
  | readonly (MomentSchedule | ScheduleText)[]
  | Timetable<unknown>
  | null;

/** Which moment of its period names a run. */
export interface ScheduleStyle {
  /**
   * "trigger" (default): the logical date is the moment the run is due. "interval": it is the start of the period
   * that has just ended, and the run carries that period as its data interval.
   */
  readonly style?: "trigger" | "interval";
}

/**
 * Runs by a cron expression: five fields, or six with seconds first; daylight saving follows the time zone.
 *
 * @example
 * ```ts
 * dag("sales_daily", { schedule: cron("0 2 * * *", "Europe/Berlin") }, build);
 * ```
 */
export function cron(expression: string, timezone = "UTC", options: ScheduleStyle = {}): CronSchedule {
  const style = options.style ?? "trigger";
  return checked({ kind: "cron", expression, timezone, style }) as CronSchedule;
}

/**
 * Runs at a fixed distance, counted from the DAG's `start`.
 *
 * @example
 * ```ts
 * dag("poll_orders", { schedule: every("10m") }, build);
 * ```
 */
export function every(duration: Duration, options: ScheduleStyle = {}): IntervalSchedule {
  const everyMs = durationMs(duration, "every()");
  return checked({ kind: "interval", everyMs, style: options.style ?? "trigger" }) as IntervalSchedule;
}

/** More than that belong into a {@link Timetable}: the list is a part of every version of the DAG. */
const MAX_DATES = 10_000;

/**
 * Runs at these moments, given in any order: each is the logical date of one run.
 *
 * @example
 * ```ts
 * dag("quarter_close", { schedule: dates(["2027-01-04T08:00:00Z", "2027-04-01T08:00:00Z"]) }, build);
 * ```
 */
export function dates(moments: readonly Moment[]): DatesSchedule {
  const where = "dates()";
  if (!Array.isArray(moments) || moments.length === 0 || moments.length > MAX_DATES) {
    const got = Array.isArray(moments) ? `${moments.length} of them` : show(moments);
    throw bad(where, `give a list of 1 to ${MAX_DATES} moments, got ${got}`);
  }
  const instants = moments.map((moment: unknown) => {
    const iso = isoInstant(moment);
    if (iso === null) throw bad(where, `${show(moment)} is not a moment; give ${MOMENT_FORMS}`);
    return iso;
  });
  // All in UTC and of one length: their order as texts is their order in time.
  return checked({ kind: "dates", dates: instants.sort() }, where) as DatesSchedule;
}

/**
 * Runs one single time, as soon as the DAG is known.
 *
 * @example
 * ```ts
 * dag("seed", { schedule: once() }, build);
 * ```
 */
export function once(): Schedule {
  return Object.freeze({ kind: "once" });
}

/**
 * Starts the next run as soon as the last one has ended.
 *
 * @example
 * ```ts
 * dag("drain_inbox", { schedule: continuous() }, build);
 * ```
 */
export function continuous(): Schedule {
  return Object.freeze({ kind: "continuous" });
}

/**
 * Runs once each time a condition on signals comes true, with the conf `{ signal }`; or once for every event of a
 * trigger (one of time has a single event), with the conf `{ event }`, which is acknowledged when its run is stored; or
 * when assets have changed, with the conf `{ assetEvents }`. Without a `params` schema, what is in `ctx.params` is typed.
 *
 * @example
 * ```ts
 * dag("orders", { schedule: on(new RedisStreamTrigger({ connection: "bus", stream: "orders" })) }, (d) => {
 *   d.task("book", (_, ctx) => ctx.params.event?.fields["order"] ?? skip("started by hand"));
 * });
 *
 * const paid = signal("order.paid", z.object({ order: z.string() }));
 * dag("shipping", { schedule: on(paid, { route: "order" }) }, (d) => {
 *   d.task("ship", (_, ctx) => ctx.params.signal?.value.order ?? skip("started by hand"));
 * });
 *
 * const [orders, customers] = [asset("s3://shop/orders"), asset("s3://shop/customers")];
 * dag("report", { schedule: on(any(all(orders, customers), cron("0 6 * * *"))) }, build);
 * ```
 */
export function on<Event extends AssetEvent<unknown>>(
  condition: Condition<Event>,
  options?: AssetScheduleOptions,
): SignalSchedule<Event>;
export function on<Value>(condition: Condition<Value>, options?: RouteOptions): SignalSchedule<Value>;
export function on<Event>(trigger: WaitableJson<Event>): EventSchedule<Event>;
export function on(given: unknown, options?: RouteOptions & AssetScheduleOptions): Schedule {
  if (isCondition(given)) return onCondition(given, options);
  if (!isWaitable(given)) {
    const remedy = typeof given === "string" ? `; a signal is made with signal(${show(given)})` : "";
    throw new TriggerError(
      "TW_BAD_TRIGGER",
      `on() takes a signal, a condition of signals or assets, or a trigger, got ${show(given)}${remedy}`,
    );
  }
  const trigger = callAtDefinition(given);
  const observed = trigger.kind === "tradewind.any" ? observedKinds(trigger) : [];
  if (observed.length > 0) {
    throw new TriggerError(
      "TW_BAD_TRIGGER",
      `on(any()): "${observed[0]}" cannot be one of several triggers of a schedule; use signals alone, or a DAG for each`,
    );
  }
  return checked({ kind: "trigger", trigger }, "on()");
}

/** How a schedule on signals checks what they bring; kept beside it, for a manifest is nothing but JSON. */
const SIGNAL_PARAMS = Symbol.for("tradewind.signalParams");

/** The schema of a DAG's params that its schedule brings, if any. */
export function paramsOf(schedule: unknown): StandardSchemaV1 | null {
  if (typeof schedule !== "object" || schedule === null) return null;
  return (schedule as { readonly [SIGNAL_PARAMS]?: StandardSchemaV1 })[SIGNAL_PARAMS] ?? null;
}

/** Assets are signals of a namespace of their own; what became of them is gathered for the run. */
function onCondition(condition: Condition, options?: RouteOptions & AssetScheduleOptions): Schedule {
  if (!leavesOf(condition).some(({ leaf }) => leaf.namespace === ASSET_NAMESPACE))
    return onSignals(condition, options);
  const { params, schedule } = onAssets(
    condition,
    options,
    (time, where) => checked(time, where) as TimePart,
  );
  if (params !== null) Object.defineProperty(schedule, SIGNAL_PARAMS, { value: params });
  return Object.freeze(schedule);
}

function onSignals(condition: Condition, options?: RouteOptions): Schedule {
  const where = "on()";
  const given = knownOptions(options, ["route"], where)["route"] ?? null;
  const route = given === null ? null : checkedPath(given, `${where}: route`);
  const when = conditionManifest(condition, where, noTasks(where));
  const leaves = leavesOf(condition);
  if (leaves.some(({ leaf }) => leaf.inRun || (leaf.where !== null && hasReference(leaf.where)))) {
    throw bad(where, "there is no run yet, so inRun() and conf() have no meaning here");
  }
  if (route !== null && hasAll(when)) {
    throw bad(where, "route takes a signal or any(): the signals of all() may belong to different runs");
  }
  const schedule: Schedule = { kind: "signal", when, route };
  const params = signalParams(leaves);
  if (params !== null) Object.defineProperty(schedule, SIGNAL_PARAMS, { value: params });
  return Object.freeze(schedule);
}

function hasAll(condition: SignalCondition): boolean {
  if (condition.kind === "all") return true;
  return condition.kind === "any" && condition.of.some(hasAll);
}

/** The manifest form of a DAG's `schedule` option. */
export function scheduleManifest(option: unknown, where: string): ScheduleManifest {
  if (option === null || option === undefined) return { kind: "none" };
  if (typeof option === "string") return fromText(option.trim(), where);
  if (isTimetable(option)) return option[TIMETABLE](where);
  if (Array.isArray(option)) return several(option, where);
  if (typeof option === "object" && KINDS.has((option as Schedule).kind))
    return checked(option as Schedule, where);
  throw bad(
    where,
    `${show(option)} is not a schedule; use cron(), every(), dates(), a list of those, once(), continuous(), on(), a Timetable, a preset like "@daily", or null`,
  );
}

const KINDS: ReadonlySet<string> = new Set<Schedule["kind"]>([
  "none",
  "once",
  "continuous",
  "cron",
  "interval",
  "dates",
  "trigger",
  "signal",
]);

/** One run per moment, whoever names it. */
function several(options: readonly unknown[], where: string): ScheduleManifest {
  if (options.length === 0) throw bad(where, "the list is empty; leave the schedule out for none");
  const of = options.map((option, index) => {
    const at = `${where}[${index}]`;
    const schedule = scheduleManifest(option, at);
    if (schedule.kind !== "cron" && schedule.kind !== "interval" && schedule.kind !== "dates") {
      throw bad(
        at,
        `a list takes cron(), every() and dates(), not a schedule of the kind "${schedule.kind}"`,
      );
    }
    if ("style" in schedule && schedule.style === "interval") {
      throw bad(at, 'style "interval" has no meaning in a list: the periods of several schedules overlap');
    }
    return schedule;
  });
  return Object.freeze(of.length === 1 ? (of[0] as MomentSchedule) : { kind: "several", of });
}

const PRESET_CRON: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@quarterly": "0 0 1 */3 *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

const CRON_FIELD = /^[0-9A-Za-z*,/\-?#+]+$/;

function fromText(text: string, where: string): ScheduleManifest {
  if (text === "@once") return once();
  if (text === "@continuous") return continuous();
  const preset = PRESET_CRON[text];
  if (text.startsWith("@") && preset === undefined) {
    throw bad(
      where,
      `unknown preset ${show(text)}; use one of @once, @continuous, ${Object.keys(PRESET_CRON).join(", ")}`,
    );
  }
  return checked({ kind: "cron", expression: preset ?? text, timezone: "UTC", style: "trigger" }, where);
}

function checked(schedule: Schedule, where?: string): Schedule {
  if (schedule.kind === "cron") checkCron(schedule, where ?? "cron()");
  if (schedule.kind === "interval" && !(schedule.everyMs > 0)) {
    throw bad(where ?? "every()", "the distance between two runs must be more than 0");
  }
  if (schedule.kind === "dates") checkDates(schedule, where ?? "dates()");
  if ("style" in schedule && schedule.style !== "trigger" && schedule.style !== "interval") {
    throw bad(where ?? "schedule", `style is "trigger" or "interval", not ${show(schedule.style)}`);
  }
  return Object.freeze({ ...schedule });
}

function checkDates({ dates: given }: DatesSchedule, where: string): void {
  const twice = given.find((date, index) => date === given[index - 1]);
  if (twice !== undefined) throw bad(where, `${twice} is there twice; a moment has one run`);
}

function checkCron(schedule: Extract<Schedule, { kind: "cron" }>, where: string): void {
  const fields = typeof schedule.expression === "string" ? schedule.expression.trim().split(/\s+/) : [];
  if ((fields.length !== 5 && fields.length !== 6) || !fields.every((field) => CRON_FIELD.test(field))) {
    throw bad(
      where,
      `${show(schedule.expression)} is not a cron expression; write five fields "minute hour day month weekday" (or six, seconds first)`,
    );
  }
  try {
    new Intl.DateTimeFormat("en", { timeZone: schedule.timezone });
  } catch (cause) {
    throw bad(
      where,
      `unknown time zone ${show(schedule.timezone)}; use an IANA name like "Europe/Berlin"`,
      cause,
    );
  }
}

function bad(where: string, problem: string, cause?: unknown): DagDefinitionError {
  return new DagDefinitionError(
    "TW_BAD_SCHEDULE",
    `${where}: ${problem}`,
    cause === undefined ? undefined : { cause },
  );
}

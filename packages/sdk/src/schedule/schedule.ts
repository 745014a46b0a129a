/**
 * Schedules: values that say when runs of a DAG are created. The scheduler computes the times. The checks here are
 * cheap (number of fields, known time zone); the engine's cron parser validates the rest when the bundle is loaded.
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

/**
 * A schedule as the schedule functions return it.
 * @example const schedule: Schedule = cron("0 2 * * *", "Europe/Berlin");
 */
export type Schedule = Exclude<ScheduleManifest, { kind: "several" | "timetable" }>;

/**
 * The type of {@link cron}.
 * @example const nightly: CronSchedule = cron("0 2 * * *", "Europe/Berlin");
 */
export type CronSchedule = Extract<Schedule, { kind: "cron" }>;

/**
 * The type of {@link every}.
 * @example const often: IntervalSchedule = every("10m");
 */
export type IntervalSchedule = Extract<Schedule, { kind: "interval" }>;

/**
 * The type of {@link dates}.
 * @example const closings: DatesSchedule = dates(["2027-01-04", "2027-04-01"]);
 */
export type DatesSchedule = Extract<Schedule, { kind: "dates" }>;

declare const EVENT: unique symbol;

/**
 * The type of {@link on} for a trigger.
 * @example const schedule: EventSchedule<FileEvent> = on(new FileTrigger({ path: "/data/in/*.csv" }));
 */
export type EventSchedule<Event> = Extract<Schedule, { kind: "trigger" }> & { readonly [EVENT]?: Event };

/**
 * The params of a DAG that is scheduled on a trigger; `event` is missing in a run that was triggered manually.
 * @example const path = (params: EventParams<FileEvent>) => params.event?.path;
 */
export interface EventParams<Event> {
  readonly event?: Event;
}

declare const SIGNALS: unique symbol;

/**
 * The type of {@link on} for signals and assets.
 * @example const schedule: SignalSchedule<string> = on(signal<string>("order.paid"));
 */
export type SignalSchedule<Value> = Extract<Schedule, { kind: "signal" }> & { readonly [SIGNALS]?: Value };

/**
 * The params of a DAG that is scheduled on signals or assets; all fields are missing in a run that was triggered
 * manually.
 * @example const order = (params: SignalParams<{ order: string }>) => params.signal?.value.order;
 */
export type SignalParams<Value> = [Value] extends [AssetEvent<unknown>]
  ? AssetParams<Value>
  : {
      /** The signal that made the condition true. */
      readonly signal?: SignalEvent<Value>;
      /** For a condition with all(): the signals that made it true, by key. */
      readonly signals?: Readonly<Record<string, SignalEvent<Value>>>;
    };

/**
 * Options of {@link on} for signals.
 * @example dag("shipping", { schedule: on(signal<{ order: string }>("order.paid"), { route: "order" } satisfies RouteOptions) }, build);
 */
export interface RouteOptions {
  /**
   * The path of a field in the signal's value, like "order.id", that names the run: a second run of the same name is
   * not created.
   */
  readonly route?: string;
}

/**
 * Names of common schedules, all in UTC.
 * @example const schedule: SchedulePreset = "@daily";
 */
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
 * A value of the option `schedule`; a text is a preset or a cron expression in UTC, a list combines its schedules.
 * @example const schedules: ScheduleOption[] = ["@daily", "0 2 * * *", [cron("0 2 * * *"), every("6h")], null];
 */
export type ScheduleOption =
  | Schedule
  | ScheduleText
  | readonly (MomentSchedule | ScheduleText)[]
  | Timetable<unknown>
  | null;

/**
 * Options of {@link cron} and {@link every}.
 * @example const schedule = cron("0 2 * * *", "UTC", { style: "interval" } satisfies ScheduleStyle);
 */
export interface ScheduleStyle {
  /**
   * "trigger": the logical date is the time at which the run is due; "interval": it is the start of the period that has
   * ended, which is the data interval of the run (default "trigger").
   */
  readonly style?: "trigger" | "interval";
}

/**
 * Creates runs by a cron expression with five fields, or six with seconds first, in a time zone.
 * @example dag("sales_daily", { schedule: cron("0 2 * * *", "Europe/Berlin") }, build);
 */
export function cron(expression: string, timezone = "UTC", options: ScheduleStyle = {}): CronSchedule {
  const style = options.style ?? "trigger";
  return checked({ kind: "cron", expression, timezone, style }) as CronSchedule;
}

/**
 * Creates runs at a fixed interval, counted from the DAG's `start`.
 * @example dag("poll_orders", { schedule: every("10m") }, build);
 */
export function every(duration: Duration, options: ScheduleStyle = {}): IntervalSchedule {
  const everyMs = durationMs(duration, "every()");
  return checked({ kind: "interval", everyMs, style: options.style ?? "trigger" }) as IntervalSchedule;
}

/** A longer list belongs in a {@link Timetable}: the list is part of every version of the DAG. */
const MAX_DATES = 10_000;

/**
 * Creates one run for each of these logical dates.
 * @example dag("quarter_close", { schedule: dates(["2027-01-04T08:00:00Z", "2027-04-01T08:00:00Z"]) }, build);
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
  // All are in UTC and of one length: the order as texts is the order in time.
  return checked({ kind: "dates", dates: instants.sort() }, where) as DatesSchedule;
}

/**
 * Creates a single run as soon as the DAG is loaded.
 * @example dag("seed", { schedule: once() }, build);
 */
export function once(): Schedule {
  return Object.freeze({ kind: "once" });
}

/**
 * Creates the next run as soon as the last one has ended.
 * @example dag("drain_inbox", { schedule: continuous() }, build);
 */
export function continuous(): Schedule {
  return Object.freeze({ kind: "continuous" });
}

/**
 * Creates a run for each event of a trigger, each time a condition on signals becomes true, or after changes of assets.
 * @see docs/guides/schedules.md
 *
 * @example
 * ```ts
 * const paid = signal("order.paid", z.object({ order: z.string() }));
 * dag("shipping", { schedule: on(paid, { route: "order" }) }, (d) => {
 *   d.task("ship", (_, ctx) => ctx.params.signal?.value.order ?? skip("triggered manually"));
 * });
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
    const remedy = typeof given === "string" ? `; declare a signal with signal(${show(given)})` : "";
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

/** The key of the validator of a schedule on signals; stored beside the schedule, which is plain JSON. */
const SIGNAL_PARAMS = Symbol.for("tradewind.signalParams");

/** The validator of params that a schedule provides, if any. */
export function paramsOf(schedule: unknown): StandardSchemaV1 | null {
  if (typeof schedule !== "object" || schedule === null) return null;
  return (schedule as { readonly [SIGNAL_PARAMS]?: StandardSchemaV1 })[SIGNAL_PARAMS] ?? null;
}

/** Assets are signals in a namespace of their own; their events are collected for the run. */
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

/** Combines schedules: several schedules with the same moment create one run. */
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
    throw bad(where ?? "every()", "the interval between two runs must be more than 0");
  }
  if (schedule.kind === "dates") checkDates(schedule, where ?? "dates()");
  if ("style" in schedule && schedule.style !== "trigger" && schedule.style !== "interval") {
    throw bad(where ?? "schedule", `style is "trigger" or "interval", not ${show(schedule.style)}`);
  }
  return Object.freeze({ ...schedule });
}

function checkDates({ dates: given }: DatesSchedule, where: string): void {
  const twice = given.find((date, index) => date === given[index - 1]);
  if (twice !== undefined) throw bad(where, `${twice} appears twice; a moment has one run`);
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

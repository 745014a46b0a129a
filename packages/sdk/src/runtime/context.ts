import type { Asset, AssetAlias, AssetEvent } from "../asset/asset.ts";
import type { AnyOutput, Output } from "../author/handle.ts";
import type { Produced, ReturnsJson } from "../check/json.ts";
import type { Json } from "../manifest.ts";
import type { Duration } from "../schedule/duration.ts";
import type { HeardSignal } from "../signal/reaction.ts";
import type { Signal, SignalLeaf } from "../signal/signal.ts";
import type { SignalEvent } from "../trigger/builtin-triggers.ts";
import type { AnyTrigger, EventsAreJson, Members, ReceivedOf } from "../trigger/joint-trigger.ts";
import type { WaitableJson } from "../trigger/waitable.ts";
import type { ConnectionFacts, ErrorFacts } from "./program.ts";
import type { Services } from "./services.ts";

/** The params of a DAG that declares no schema: the run's conf, as given. */
export type AnyParams = Readonly<Record<string, Json | undefined>>;

/** A stored connection, as `ctx.connection` answers it. */
export type Connection = ConnectionFacts;

/** The run that a task belongs to. */
export interface RunContext {
  readonly id: string;
  readonly dagId: string;
  /** Who made the run: "scheduled", "manual", "backfill" ... */
  readonly type: string;
  /** The moment the run stands for; null for a run without one. */
  readonly logicalDate: Date | null;
  /** The period whose data the run handles. */
  readonly dataInterval: { readonly start: Date; readonly end: Date } | null;
  readonly runAfter: Date;
  readonly startedAt: Date | null;
  /** The version of the DAG that the run keeps from beginning to end. */
  readonly version: number;
}

/** Writes to the task's log. Fields may hold anything; what is not JSON is shown as text. */
export interface TaskLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** What task handlers and callbacks can both reach. */
export interface BaseContext extends Services {
  readonly run: RunContext;
  readonly tryNumber: number;
  /** Aborted when the task is cancelled or out of time: pass it on to `fetch` and the like. */
  readonly abort: AbortSignal;
  /**
   * The output of another task of this run, by handle or by full id; undefined when it has none (yet). Prefer
   * `inputs`: they are typed, and they make the task wait.
   */
  output<T>(task: Output<T>): Promise<T | undefined>;
  output(task: string | AnyOutput): Promise<Json | undefined>;
}

export interface UntilOptions {
  /** The longest wait; after it `ctx.until` rejects with a {@link DeferralTimeoutError}. */
  readonly timeout?: Duration;
}

/** What a step's result is when it is remembered: JSON knows null, but not undefined. */
export type Remembered<R> = [undefined] extends [R] ? Exclude<R, undefined> | null : R;

/** The steps of a function that may have to wait: see {@link TaskContext}. */
export interface StepContext {
  /**
   * Does something once in a try, whatever waits there are: the result is remembered by name and must be JSON.
   *
   * @example
   * ```ts
   * d.task("export", async (_, ctx) => {
   *   const job = await ctx.once("submit", () => submit("sales"));
   *   const { rows } = await ctx.until("done", new JobDone({ job }), { timeout: "6h" });
   *   return rows;
   * });
   * ```
   */
  once<R>(name: string, work: (() => R) & ReturnsJson<R>): Promise<Remembered<Produced<R>>>;
  /**
   * Waits for a signal, without a process. One that was sent since the run started counts, so none is missed; each wait
   * takes the first one after the last that the same try has taken. One whose value the signal's schema refuses is
   * passed over, with a warning in the log; the timeout counts again then.
   *
   * @example
   * ```ts
   * const approved = signal("order.approved", z.object({ order: z.string(), by: z.string() }));
   * const { value } = await ctx.until("approval", approved.where({ order: "A-7" }), { timeout: "2d" });
   * ctx.log.info(`approved by ${value.by}`);
   * ```
   */
  until<Value, Sent>(
    name: string,
    signal: SignalLeaf<Value, Sent>,
    options?: UntilOptions,
  ): Promise<SignalEvent<Value>>;
  /**
   * Waits for a trigger, or for several at once, without a process: the attempt ends, and when the trigger has fired
   * the function runs again from the top, up to here. What must not be done twice belongs into `ctx.once`. Rejects with
   * a {@link DeferralTimeoutError} or a {@link TriggerFailedError}. No `finally` runs when the attempt ends.
   *
   * @example
   * ```ts
   * const { csv } = await ctx.until("both", {
   *   csv: new FileTrigger({ path: "/data/in.csv" }),
   *   night: new DateTimeTrigger({ moment: "2027-01-04T22:00:00Z" }),
   * });
   * ctx.log.info(csv.path);
   * ```
   */
  until<First>(name: string, trigger: AnyTrigger<unknown, First>, options?: UntilOptions): Promise<First>;
  until<const M extends Members>(
    name: string,
    triggers: M & EventsAreJson<M>,
    options?: UntilOptions,
  ): Promise<ReceivedOf<M>>;
  until<Event>(name: string, trigger: WaitableJson<Event>, options?: UntilOptions): Promise<Event>;
}

/** A signal that has started a task: see {@link TaskContext}. */
export interface StartingSignal extends HeardSignal {
  /** What the schema says against the value, which then is as it was sent; null: nothing. `signal.is` is false of such. */
  readonly invalid: string | null;
}

export interface SendOptions {
  /** true: the signal is sent with the task's success, in the same transaction, or not at all (false: at once). */
  readonly onSuccess?: boolean;
}

/** What is sent: may be left out where it may be null. */
export type Payload<Sent> = [null] extends [Sent] ? [value?: NoInfer<Sent>] : [value: NoInfer<Sent>];

export interface ProduceOptions {
  /** The part of the asset that it is about (the whole). */
  readonly partition?: string;
}

/** What a task says about the assets it produces: see {@link TaskContext}. */
export interface ProduceContext {
  /**
   * Says what became of an asset of the task's `produces`: stored with the task's success, in the same transaction, or
   * not at all. Called several times, it tells several events; not called, the success tells one with nothing in it.
   *
   * @example
   * ```ts
   * const orders = asset("s3://shop/orders", { schema: z.object({ rows: z.number() }) });
   * d.task("export", { produces: [orders] }, async (_, ctx) => {
   *   await ctx.produce(orders, { rows: 12 }, { partition: "2027-01-04" });
   * });
   * ```
   */
  produce<Value, Sent>(
    asset: Asset<Value, Sent>,
    payload: NoInfer<Sent> | null,
    options?: ProduceOptions,
  ): Promise<void>;
  /** The same, under an alias of the task's `produces`: the asset is known only now. */
  produce<Value, Sent>(
    alias: AssetAlias,
    asset: Asset<Value, Sent>,
    payload: NoInfer<Sent> | null,
    options?: ProduceOptions,
  ): Promise<void>;
}

/** The way of signals out of a task: see {@link TaskContext}. */
export interface SendContext {
  /**
   * Sends a signal: at once, and durable when it resolves; or with `onSuccess` together with the task's success. A
   * function that waits runs again from the top: what must not be sent twice belongs into `ctx.once`, or `onSuccess`.
   *
   * @example
   * ```ts
   * const trained = signal("model.trained", z.object({ name: z.string(), score: z.number() }));
   * d.task("train", async (_, ctx) => {
   *   await ctx.once("tell", () => ctx.send(signal("training.began")));
   *   await ctx.send(trained, { name: "prices", score: 0.93 }, { onSuccess: true });
   * });
   * ```
   */
  send<Value, Sent>(
    signal: Signal<Value, Sent>,
    value: NoInfer<Sent>,
    options: { readonly onSuccess: true },
  ): Promise<void>;
  send<Value, Sent>(
    signal: Signal<Value, Sent>,
    ...value: Payload<Sent>
  ): Promise<{ readonly version: number }>;
}

/**
 * The second parameter of every handler: the run, its params, and the way to the outside.
 *
 * @example
 * ```ts
 * d.task("read", async (_, ctx) => {
 *   ctx.log.info("reading", { region: ctx.params.region, try: ctx.tryNumber });
 *   const url = await ctx.variable("api_url", "http://localhost:9000");
 *   return (await fetch(url, { signal: ctx.abort })).status;
 * });
 * ```
 */
export interface TaskContext<Params = AnyParams>
  extends BaseContext,
    StepContext,
    SendContext,
    ProduceContext {
  /** The run's conf, validated by the DAG's `params`. */
  readonly params: Params;
  /**
   * The signals that made the rule fire, or that `onSignal` answered, which started this try; all attempts of the try
   * have the same, and so has a task that is cleared while its run goes on. Empty when its upstream, its times or a
   * person started it. A restart adds its own, in front: what was stopped begins again with what had started it.
   *
   * @example
   * ```ts
   * const watermark = signal("clicks.watermark", z.object({ hour: z.string() }));
   * d.task("train", { on: [start(watermark)] }, (_, ctx) => {
   *   const hour = ctx.startedBy.find((heard) => watermark.is(heard))?.value.hour ?? "all of them";
   *   ctx.log.info(`training ${hour}`);
   * });
   * ```
   */
  readonly startedBy: readonly StartingSignal[];
  /** What happened to the assets that the run was made for, as it was stored; empty for other runs. */
  readonly assetEvents: readonly AssetEvent[];
  readonly taskId: string;
  /** The index of a mapped task's instance; -1 for a task that is not mapped. */
  readonly mapIndex: number;
  /** A failure of try n is retried while n <= maxTries. */
  readonly maxTries: number;
  /** New for every attempt: usable as an idempotency key or fencing token. */
  readonly attempt: string;
}

/**
 * What `onSuccess`, `onFailure` and `onRetry` receive.
 *
 * @example
 * ```ts
 * dag("sales", { onFailure: async (ctx) => notify(`${ctx.run.id} failed`) }, build);
 * ```
 */
export interface CallbackContext<Params = AnyParams> extends BaseContext {
  readonly event: "success" | "failure" | "retry";
  /** null when the run's conf does not satisfy `params`, which may be the very failure reported here. */
  readonly params: Params | null;
  /** null in a callback of the DAG. */
  readonly taskId: string | null;
  readonly error: ErrorFacts | null;
}

/** Runs after an attempt or a run has ended. What it throws is logged and changes nothing. */
export type Callback<Params = AnyParams> = (ctx: CallbackContext<Params>) => unknown;

/**
 * What `onCancel` of a task, an operator or a trigger receives: the wait that ended without its event, as it was begun.
 *
 * @example
 * ```ts
 * const onCancel = async (ctx: CancelContext) => {
 *   const { job } = ctx.trigger.args as { job: string };
 *   await cancelJob(job);
 * };
 * d.task("train", { onCancel }, async (_, ctx) => {
 *   const job = await ctx.once("submit", () => submit("train"));
 *   return (await ctx.until("done", new JobDone({ job }))).rows;
 * });
 * ```
 */
export interface CancelContext<Kwargs = Json, Params = AnyParams> extends BaseContext {
  readonly event: "cancel";
  /** null when the run's conf does not satisfy `params`. */
  readonly params: Params | null;
  readonly taskId: string;
  /** -1 when the task is not mapped. */
  readonly mapIndex: number;
  /** "timeout": the wait or its try was out of time; "cancelled": any other end. */
  readonly cause: "timeout" | "cancelled";
  /** The name given to `ctx.until`; null in an operator. */
  readonly wait: string | null;
  /** Of the deferral; `{}` in a function task. */
  readonly kwargs: Kwargs;
  /** What was waited for. */
  readonly trigger: { readonly kind: string; readonly args: Json };
}

/** Runs after a wait has ended without its event. What it throws is logged, and it is not called again. */
export type CancelCallback<Params = AnyParams> = (ctx: CancelContext<Json, Params>) => unknown;

/**
 * What callbacks of groups receive. Its `tryNumber` is that of the group.
 *
 * @example
 * ```ts
 * d.group("load", { retries: 2, onFailure: (ctx) => notify(`${ctx.groupId} of ${ctx.run.id}: ${ctx.state}`) }, (g) => {
 *   g.task("copy", () => publish());
 * });
 * ```
 */
export interface GroupCallbackContext<Params = AnyParams> extends BaseContext {
  readonly event: "success" | "failure" | "retry";
  readonly params: Params | null;
  readonly groupId: string;
  /** The map index of the item, of a mapped group with retries; -1: of the group, for all its items if it is mapped. */
  readonly mapIndex: number;
  /** How the group, or this try of it, has ended. */
  readonly state: "success" | "failed";
}

/** Runs after a group has ended. What it throws is logged and changes nothing. */
export type GroupCallback<Params = AnyParams> = (ctx: GroupCallbackContext<Params>) => unknown;

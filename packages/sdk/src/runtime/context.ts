import type { Asset, AssetAlias, AssetEvent } from "../asset/asset.ts";
import type { AnyOutput, Output } from "../author/handle.ts";
import type { Produced, ReturnsJson } from "../check/json.ts";
import type { Json } from "../manifest.ts";
import type { Duration } from "../schedule/duration.ts";
import type { IncomingSignal } from "../signal/reaction.ts";
import type { Signal, SignalLeaf } from "../signal/signal.ts";
import type { SignalEvent } from "../trigger/builtin-triggers.ts";
import type { AnyTrigger, EventsAreJson, Members, ReceivedOf } from "../trigger/joint-trigger.ts";
import type { WaitableJson } from "../trigger/waitable.ts";
import type { ConnectionFacts, ErrorFacts } from "./program.ts";
import type { Services } from "./services.ts";

/**
 * The params of a DAG without a schema: the conf of the run.
 * @example const region = (params: AnyParams) => String(params["region"] ?? "eu");
 */
export type AnyParams = Readonly<Record<string, Json | undefined>>;

/**
 * A stored connection, as `ctx.connection` returns it.
 * @example const url = (db: Connection) => `postgres://${db.host}:${db.port}/${db.schema}`;
 */
export type Connection = ConnectionFacts;

/**
 * The run of a task.
 * @example d.task("day", (_, ctx) => ((run: RunContext) => run.logicalDate?.toISOString() ?? "manual")(ctx.run));
 */
export interface RunContext {
  readonly id: string;
  readonly dagId: string;
  /** How the run was created: "scheduled", "manual", "backfill" ... */
  readonly type: string;
  /** The moment that the run stands for; null for a run without one. */
  readonly logicalDate: Date | null;
  /** The period whose data the run processes. */
  readonly dataInterval: { readonly start: Date; readonly end: Date } | null;
  readonly runAfter: Date;
  readonly startedAt: Date | null;
  /** The version of the DAG, which the run keeps until it ends. */
  readonly version: number;
}

/**
 * Writes lines to the log of a task; fields that are not JSON are shown as text.
 * @example const report = (log: TaskLog, rows: number) => log.info("loaded", { rows });
 */
export interface TaskLog {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/**
 * The context that handlers and callbacks share.
 * @example const link = (ctx: BaseContext) => `${ctx.run.dagId}/${ctx.run.id}/${ctx.tryNumber}`;
 */
export interface BaseContext extends Services {
  readonly run: RunContext;
  readonly tryNumber: number;
  /** Aborted when the task is cancelled or times out: pass it to `fetch` and other cancellable calls. */
  readonly abort: AbortSignal;
  /**
   * The output of another task of this run, by handle or full id; undefined if it has none (yet). Prefer `inputs`,
   * which are typed and make the task wait.
   */
  output<T>(task: Output<T>): Promise<T | undefined>;
  output(task: string | AnyOutput): Promise<Json | undefined>;
}

/**
 * Options of `ctx.until`.
 * @example const options: UntilOptions = { timeout: "6h" };
 */
export interface UntilOptions {
  /** The maximum duration of the wait, after which `ctx.until` rejects with a {@link DeferralTimeoutError}. */
  readonly timeout?: Duration;
}

/**
 * The type of a recorded step result: undefined becomes null.
 * @example const result: Remembered<string | undefined> = null;
 */
export type Remembered<R> = [undefined] extends [R] ? Exclude<R, undefined> | null : R;

/**
 * The steps of a function: part of {@link TaskContext}.
 * @example const submitOnce = (ctx: StepContext) => ctx.step("submit", () => submit("sales"));
 */
export interface StepContext {
  /**
   * Runs `work` once per try: the result is recorded by name, must be JSON, and is returned again after each wait.
   *
   * @example
   * ```ts
   * d.task("export", async (_, ctx) => {
   *   const job = await ctx.step("submit", () => submit("sales"));
   *   const { rows } = await ctx.until("done", new JobDone({ job }), { timeout: "6h" });
   *   return rows;
   * });
   * ```
   */
  step<R>(name: string, work: (() => R) & ReturnsJson<R>): Promise<Remembered<Produced<R>>>;
  /**
   * Waits for a signal without a process. Signals sent since the run started count; each wait takes the next signal
   * after the last one taken in this try. A signal that its schema rejects is skipped with a warning, and the timeout
   * starts again.
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
   * Waits for one or several triggers without a process: the attempt ends, and after the event the function runs again
   * from the top, so put side effects into `ctx.step`. Rejects with a {@link DeferralTimeoutError} or a {@link
   * TriggerFailedError}. No `finally` runs when the attempt ends.
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

/**
 * A signal that started a task: see {@link TaskContext.startSignals}.
 * @example d.task("log", (_, ctx) => ctx.startSignals.forEach((heard: StartSignal) => ctx.log.info(heard.key)));
 */
export interface StartSignal extends IncomingSignal {
  /** The problem if the schema rejects the value, otherwise null; `signal.is` is false for such a signal. */
  readonly invalid: string | null;
}

/**
 * Options of `ctx.send`.
 * @example const options: SendOptions = { onSuccess: true };
 */
export interface SendOptions {
  /** Send the signal in the same transaction as the task's success, or not at all (default false: at once). */
  readonly onSuccess?: boolean;
}

/**
 * The value argument of `ctx.send`; it is optional if the value may be null.
 * @example const values: Payload<{ order: string }> = [{ order: "A-7" }];
 */
export type Payload<Sent> = [null] extends [Sent] ? [value?: NoInfer<Sent>] : [value: NoInfer<Sent>];

/**
 * Options of `ctx.produce`.
 * @example const options: ProduceOptions = { partition: "2027-01-04" };
 */
export interface ProduceOptions {
  /** The partition of the asset that changed (default: the whole asset). */
  readonly partition?: string;
}

/**
 * Asset events of a task: part of {@link TaskContext}.
 *
 * @example
 * ```ts
 * const orders = asset<{ rows: number }>("s3://shop/orders");
 * const publishOrders = (ctx: ProduceContext) => ctx.produce(orders, { rows: 12 });
 * ```
 */
export interface ProduceContext {
  /**
   * Adds an event of an asset in the task's `produces`; events are stored in the same transaction as the task's
   * success, or not at all. Without a call, the success stores one event without a payload.
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
  /** Like the first form, under an alias of the task's `produces`, for an asset that is known only now. */
  produce<Value, Sent>(
    alias: AssetAlias,
    asset: Asset<Value, Sent>,
    payload: NoInfer<Sent> | null,
    options?: ProduceOptions,
  ): Promise<void>;
}

/**
 * Sending signals from a task: part of {@link TaskContext}.
 * @example const tell = (ctx: SendContext) => ctx.send(signal("training.began"));
 */
export interface SendContext {
  /**
   * Sends a signal; it is durable when the promise resolves. With `onSuccess` it is sent together with the task's
   * success. A function that waits runs again from the top: use `ctx.step` or `onSuccess` for a signal that must not be
   * sent twice.
   *
   * @example
   * ```ts
   * const trained = signal("model.trained", z.object({ name: z.string(), score: z.number() }));
   * d.task("train", async (_, ctx) => {
   *   await ctx.step("tell", () => ctx.send(signal("training.began")));
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
 * The second parameter of every handler: run, params, log, steps, signals and assets.
 * @see docs/guides/waiting.md
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
   * The signals that started this try, those of a restart first; empty if its upstream, a time or a user started it.
   *
   * @example
   * ```ts
   * const watermark = signal("clicks.watermark", z.object({ hour: z.string() }));
   * d.task("train", { on: [start(watermark)] }, (_, ctx) => {
   *   const hour = ctx.startSignals.find((heard) => watermark.is(heard))?.value.hour ?? "all of them";
   *   ctx.log.info(`training ${hour}`);
   * });
   * ```
   */
  readonly startSignals: readonly StartSignal[];
  /** The asset events for which the run was created, as stored; empty for other runs. */
  readonly assetEvents: readonly AssetEvent[];
  readonly taskId: string;
  /** The index of a mapped task's instance; -1 if the task is not mapped. */
  readonly mapIndex: number;
  /** A failed try n is retried while n <= maxTries. */
  readonly maxTries: number;
  /** Unique per attempt: usable as an idempotency key or fencing token. */
  readonly attempt: string;
}

/**
 * The context of `onSuccess`, `onFailure` and `onRetry`.
 * @example dag("sales", { onFailure: async (ctx) => notify(`${ctx.run.id} failed`) }, build);
 */
export interface CallbackContext<Params = AnyParams> extends BaseContext {
  readonly event: "success" | "failure" | "retry";
  /** Null if the run's conf does not satisfy `params`, which may be the failure that is reported. */
  readonly params: Params | null;
  /** Null in a callback of the DAG. */
  readonly taskId: string | null;
  readonly error: ErrorFacts | null;
}

/**
 * A function that runs after an attempt or a run has ended; its errors are logged.
 * @example const onFailure: Callback = (ctx) => notify(`${ctx.run.id}: ${ctx.error?.message}`);
 */
export type Callback<Params = AnyParams> = (ctx: CallbackContext<Params>) => unknown;

/**
 * The context of `onCancel` of a task, an operator or a trigger: the wait that ended without its event.
 *
 * @example
 * ```ts
 * const onCancel = async (ctx: CancelContext) => {
 *   const { job } = ctx.trigger.args as { job: string };
 *   await cancelJob(job);
 * };
 * d.task("train", { onCancel }, async (_, ctx) => {
 *   const job = await ctx.step("submit", () => submit("train"));
 *   return (await ctx.until("done", new JobDone({ job }))).rows;
 * });
 * ```
 */
export interface CancelContext<Kwargs = Json, Params = AnyParams> extends BaseContext {
  readonly event: "cancel";
  /** Null if the run's conf does not satisfy `params`. */
  readonly params: Params | null;
  readonly taskId: string;
  /** -1 if the task is not mapped. */
  readonly mapIndex: number;
  /** "timeout": the wait or its try timed out; "cancelled": any other end. */
  readonly cause: "timeout" | "cancelled";
  /** The name given to `ctx.until`; null in an operator. */
  readonly wait: string | null;
  /** The kwargs of the deferral; `{}` in a function task. */
  readonly kwargs: Kwargs;
  /** The trigger of the wait. */
  readonly trigger: { readonly kind: string; readonly args: Json };
}

/**
 * A function that runs once after a wait has ended without its event; its errors are logged.
 * @example const onCancel: CancelCallback = (ctx) => ctx.log.warn(`${ctx.trigger.kind}: ${ctx.cause}`);
 */
export type CancelCallback<Params = AnyParams> = (ctx: CancelContext<Json, Params>) => unknown;

/**
 * The context of callbacks of a group; `tryNumber` counts the tries of the group.
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
  /** The map index of the item, for a mapped group with retries; -1 for the whole group. */
  readonly mapIndex: number;
  /** The end state of the group, or of this try of it. */
  readonly state: "success" | "failed";
}

/**
 * A function that runs after a group has ended; its errors are logged.
 * @example const onFailure: GroupCallback = (ctx) => notify(`group ${ctx.groupId} failed`);
 */
export type GroupCallback<Params = AnyParams> = (ctx: GroupCallbackContext<Params>) => unknown;

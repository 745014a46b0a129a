import type { AnyOutput, Output } from "./handle.ts";
import type { Json } from "./manifest.ts";
import type { ConnectionFacts, ErrorFacts } from "./program.ts";

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
export interface BaseContext {
  readonly run: RunContext;
  readonly tryNumber: number;
  readonly log: TaskLog;
  /** Aborted when the task is cancelled or out of time: pass it on to `fetch` and the like. */
  readonly abort: AbortSignal;
  /**
   * The output of another task of this run, by handle or by full id; undefined when it has none (yet). Prefer
   * `inputs`: they are typed, and they make the task wait.
   */
  output<T>(task: Output<T>): Promise<T | undefined>;
  output(task: string | AnyOutput): Promise<Json | undefined>;
  /** A stored variable; without a default, one that is not set is an error. */
  variable(key: string, defaultValue?: string): Promise<string>;
  /** A stored connection; one that is not stored is an error. */
  connection(id: string): Promise<Connection>;
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
export interface TaskContext<Params = AnyParams> extends BaseContext {
  /** The run's conf, validated by the DAG's `params`. */
  readonly params: Params;
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

import { DagDefinitionError, show } from "../check/errors.ts";
import type { CancelContext, TaskContext } from "../runtime/context.ts";
import type { Control } from "../signal/control.ts";
import type { HeardSignal, SignalAction, SignalContext } from "../signal/reaction.ts";
import { type AnySignal, isSignal } from "../signal/signal.ts";
import { type DeferOptions, type Deferred, deferred, type StartFrom } from "./deferral.ts";

declare const RESULT: unique symbol;
declare const INPUTS: unique symbol;

/** The inputs of an operator that does not say which it takes. */
export type AnyInputs = Readonly<Record<string, unknown>>;

/**
 * A reusable task: a class with arguments and an `execute` method, put into a DAG with `d.add`.
 *
 * `Args` are given to the constructor, `Result` is the output, `Inputs` (optional) are the outputs of other tasks
 * that it needs, given through the options of `d.add`.
 *
 * @example
 * ```ts
 * class Count extends Operator<{ table: string }, number> {
 *   async execute(ctx: TaskContext) {
 *     const db = await ctx.connection("warehouse");
 *     return countRows(db, this.args.table);
 *   }
 * }
 * const rows = d.add("count", new Count({ table: "sales" }), { retries: 3 }); // Output<number>
 * ```
 */
export abstract class Operator<Args = void, Result = void, Inputs = AnyInputs> {
  declare readonly [RESULT]?: Result;
  declare readonly [INPUTS]?: (inputs: Inputs) => void;

  readonly args: Args;
  readonly #signals = new Set<AnySignal>();

  constructor(args: Args) {
    this.args = args;
  }

  /** The signals that `onSignal` is asked about. */
  get signals(): ReadonlySet<AnySignal> {
    return this.#signals;
  }

  /** Adds a signal to those that `onSignal` is asked about; to be called while the DAG is defined. */
  setSignal(signal: AnySignal): void {
    if (isSignal(signal)) this.#signals.add(signal);
    else
      throw new DagDefinitionError(
        "TW_BAD_SIGNAL",
        `${this.constructor.name}.setSignal takes what signal() returned, got ${show(signal)}`,
      );
  }

  /**
   * Says what a signal means to the task, for what no rule in `on` can say. Runs in a process of its own, with what the
   * constructor was given: an attempt that is under way knows nothing of it.
   *
   * @example
   * ```ts
   * const scored = signal("model.scored", z.object({ score: z.number() }));
   * class Serve extends Operator<{ least: number }> {
   *   constructor(args: { least: number }) {
   *     super(args);
   *     this.setSignal(scored);
   *   }
   *   execute() {}
   *   onSignal(heard: HeardSignal): SignalAction {
   *     return scored.is(heard) && heard.value.score >= this.args.least ? SignalAction.RESTART : SignalAction.NONE;
   *   }
   * }
   * d.add("serve", new Serve({ least: 0.9 }), { lifetime: "streaming" });
   * ```
   */
  onSignal?(heard: HeardSignal, ctx: SignalContext): SignalAction | Promise<SignalAction>;

  /**
   * Runs, on a worker, when a wait of the operator ends without its event: the task was cancelled, cleared, marked or
   * restarted, its run ended, or it was out of time. Knows the arguments of the operator, and `kwargs` and trigger of the
   * deferral. An attempt that runs is told by `ctx.abort` instead.
   *
   * @example
   * ```ts
   * class Export extends Operator<{ table: string }, number> {
   *   async execute() {
   *     const job = await submit(this.args.table);
   *     return this.defer({ trigger: new JobDone({ job }), method: "collect", kwargs: { job } });
   *   }
   *   async collect(_ctx: TaskContext, event: { rows: number }) {
   *     return event.rows;
   *   }
   *   override async onCancel(ctx: CancelContext<{ job: string }>) {
   *     await cancelJob(ctx.kwargs.job);
   *   }
   * }
   * ```
   */
  onCancel?(ctx: CancelContext): unknown;

  /** Does the work of one attempt and returns the output, {@link skip}, {@link fail}, or a deferral. */
  abstract execute(
    ctx: TaskContext,
    inputs: Inputs,
  ): Result | Control | Deferred | Promise<Result | Control | Deferred>;

  /**
   * Begins by waiting, before any worker is needed: called when the DAG is described. Without a method, the event is
   * the output and no worker is needed at all.
   *
   * @example
   * ```ts
   * class Import extends Operator<{ path: string }, number> {
   *   startFrom() {
   *     return this.defer({ trigger: new FileTrigger({ path: this.args.path }), method: "load" });
   *   }
   *   execute() {
   *     return this.startFrom(); // where it is run without having waited, e.g. in a test
   *   }
   *   async load(_ctx: TaskContext, file: { path: string }) {
   *     return loadRows(file.path);
   *   }
   * }
   * ```
   */
  startFrom?(): StartFrom | Deferred | null;

  /**
   * Lets go of the worker until a trigger fires; then `method(ctx, event, kwargs, inputs)` goes on, in a new process.
   * To be returned. The compiler compares method, event and kwargs where the operator is put into a DAG.
   *
   * @example
   * ```ts
   * class Export extends Operator<{ table: string }, number> {
   *   async execute() {
   *     const job = await submit(this.args.table);
   *     return this.defer({ trigger: new JobDone({ job }), method: "collect", kwargs: { job }, timeout: "6h" });
   *   }
   *   async collect(ctx: TaskContext, event: { rows: number }, kwargs: { job: string }) {
   *     ctx.log.info(`${kwargs.job} is done`);
   *     return event.rows;
   *   }
   * }
   * ```
   */
  defer<Event, const Method extends keyof this & string, Kwargs = Record<never, never>>(
    options: DeferOptions<Event, Method, Kwargs>,
  ): Deferred<Method, Event, Kwargs> {
    return deferred(options) as Deferred<Method, Event, Kwargs>;
  }
}

/** By shape, not by class: an operator may come from a package with its own copy of the SDK. */
export function isOperator(value: unknown): value is Operator<unknown, unknown> {
  return typeof value === "object" && value !== null && typeof (value as Operator).execute === "function";
}

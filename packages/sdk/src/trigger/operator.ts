import { DagDefinitionError, show } from "../check/errors.ts";
import type { CancelContext, TaskContext } from "../runtime/context.ts";
import type { Control } from "../signal/control.ts";
import type { IncomingSignal, SignalAction, SignalContext } from "../signal/reaction.ts";
import { type AnySignal, isSignal } from "../signal/signal.ts";
import { type DeferOptions, type Deferred, deferred, type StartFrom } from "./deferral.ts";

declare const RESULT: unique symbol;
declare const INPUTS: unique symbol;

/**
 * The inputs of an operator that does not declare them.
 * @example const names = (inputs: AnyInputs) => Object.keys(inputs);
 */
export type AnyInputs = Readonly<Record<string, unknown>>;

/**
 * A reusable task: a class with arguments, a result and optional inputs, added to a DAG with `d.operator`.
 * @see docs/guides/waiting.md#in-an-operator
 *
 * @example
 * ```ts
 * class Count extends Operator<{ table: string }, number> {
 *   async execute(ctx: TaskContext) {
 *     const db = await ctx.connection("warehouse");
 *     return countRows(db, this.args.table);
 *   }
 * }
 * const rows = d.operator("count", new Count({ table: "sales" }), { retries: 3 }); // Output<number>
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

  /** The signals that `onSignal` receives. */
  get signals(): ReadonlySet<AnySignal> {
    return this.#signals;
  }

  /** Subscribes `onSignal` to a signal; call it while the DAG is defined. */
  setSignal(signal: AnySignal): void {
    if (isSignal(signal)) this.#signals.add(signal);
    else
      throw new DagDefinitionError(
        "TW_BAD_SIGNAL",
        `${this.constructor.name}.setSignal takes the result of signal(), got ${show(signal)}`,
      );
  }

  /**
   * Returns the action of the task on a signal, for decisions that no rule in `on` can express. Runs in a process of
   * its own with the arguments of the constructor: a running attempt does not share its state.
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
   *   onSignal(heard: IncomingSignal): SignalAction {
   *     return scored.is(heard) && heard.value.score >= this.args.least ? SignalAction.RESTART : SignalAction.NONE;
   *   }
   * }
   * d.operator("serve", new Serve({ least: 0.9 }), { lifetime: "streaming" });
   * ```
   */
  onSignal?(heard: IncomingSignal, ctx: SignalContext): SignalAction | Promise<SignalAction>;

  /**
   * Runs on a worker if a wait of the operator ends without its event: the task was cancelled, cleared, marked,
   * restarted or timed out, or its run ended. A running attempt receives `ctx.abort` instead.
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

  /** Runs one attempt and returns the output, {@link skip}, {@link fail}, or a deferral. */
  abstract execute(
    ctx: TaskContext,
    inputs: Inputs,
  ): Result | Control | Deferred | Promise<Result | Control | Deferred>;

  /**
   * The wait that the task starts with, before it needs a worker; called when the DAG is described. Without a method,
   * the event is the output and no worker is needed at all.
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
   * Releases the worker until a trigger fires; then `method(ctx, event, kwargs, inputs)` runs in a new process. Return
   * its result. `d.operator` checks method, event and kwargs at compile time.
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

/** Compares the shape, not the class: an operator may come from another copy of the SDK. */
export function isOperator(value: unknown): value is Operator<unknown, unknown> {
  return typeof value === "object" && value !== null && typeof (value as Operator).execute === "function";
}

import type { AnyParams, TaskContext } from "./context.ts";
import type { Control } from "./control.ts";
import type { DefersWell } from "./deferral.ts";
import type {
  AnyOutput,
  Group,
  HandlesFor,
  InputHandles,
  InputValues,
  NoInputs,
  Output,
  Upstream,
} from "./handle.ts";
import type { Produced, ReturnsJson } from "./json.ts";
import type { TriggerRule } from "./manifest.ts";
import type { AnyInputs, Operator } from "./operator.ts";
import type { TaskDefaults, TaskOptions } from "./task-options.ts";
import type { WaitableJson } from "./waitable.ts";

/** The work of a task: receives its inputs and the context, returns the output. */
export type Handler<I, Rule, Params, R> = (inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => R;

/** The options whose types flow into the handler. */
export interface Edges<I, Rule> {
  /** Outputs of other tasks, by the name under which the handler receives them. */
  readonly inputs?: I;
  /** When the task may start, by the states of its upstream tasks ("allSuccess"). Decides the type of the inputs. */
  readonly rule?: Rule;
}

/** Which direct downstream tasks a branch follows: full ids, handles, groups, or nothing to skip them all. */
export type BranchChoice = BranchTarget | readonly BranchTarget[] | null | undefined;

/** What the function of a branch returns: its choice, {@link skip} or {@link fail}. */
export type BranchResult = BranchChoice | Control | Promise<BranchChoice | Control>;

export type BranchTarget = string | AnyOutput | Group;

export interface ShortCircuitOptions {
  /** true: skip the direct downstream tasks only, and let the trigger rules of the others decide (false). */
  readonly respectRules?: boolean;
}

export interface GroupOptions<Params = AnyParams> {
  /** The group's first tasks come after these. */
  readonly after?: Upstream | readonly Upstream[];
  /** Options for all tasks of the group that do not say otherwise. */
  readonly defaults?: TaskDefaults<Params>;
  /** Markdown, shown in the UI. */
  readonly docs?: string;
}

/** The options of `d.add`: an operator that names its inputs must be given them. */
export type AddOptions<In, Rule extends TriggerRule, Params> = TaskOptions<Params> & {
  readonly rule?: Rule;
} & (string extends keyof In
    ? { readonly inputs?: InputHandles }
    : { readonly inputs: HandlesFor<In, Rule> });

type AddArguments<In, Rule extends TriggerRule, Params> = string extends keyof In
  ? [options?: AddOptions<In, Rule, Params>]
  : [options: AddOptions<In, Rule, Params>];

/**
 * Puts tasks into a DAG. A handle must exist before another task can name it, so a cycle cannot be written.
 * Use it as a parameter type to define parts of a DAG in functions of their own.
 *
 * @example
 * ```ts
 * function quality(d: DagBuilder, rows: Output<number>) {
 *   return d.task("check_rows", { inputs: { rows } }, ({ rows }) => (rows > 0 ? rows : fail("no rows")));
 * }
 * ```
 */
export interface DagBuilder<Params = AnyParams> {
  /**
   * Adds a task: a function of its inputs and the context.
   *
   * @example
   * ```ts
   * const rows = d.task("extract", async () => fetchRows());                            // Output<Row[]>
   * d.task("load", { inputs: { rows }, retries: 3 }, ({ rows }, ctx) => load(rows, ctx.params.region));
   * ```
   */
  task<R>(id: string, run: Handler<NoInputs, "allSuccess", Params, R> & ReturnsJson<R>): Output<Produced<R>>;
  task<R, I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule>,
    run: Handler<I, Rule, Params, R> & ReturnsJson<R>,
  ): Output<Produced<R>>;

  /**
   * Adds a task made by an operator.
   *
   * @example
   * ```ts
   * const rows = d.add("count", new Count({ table: "sales" }), { retries: 3 });
   * ```
   */
  add<R, O, In = AnyInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    operator: Operator<unknown, R, In> & O & ReturnsJson<R> & DefersWell<O, R, In>,
    ...options: AddArguments<In, Rule, Params>
  ): Output<Produced<R>>;

  /**
   * Adds a node that waits for a trigger, without a process: its output is the event.
   *
   * @example
   * ```ts
   * const file = d.trigger("file", new FileTrigger({ path: "/data/in/sales.csv" }), { timeout: "6h" });
   * d.task("load", { inputs: { file } }, ({ file }) => load(file.path));
   * ```
   */
  trigger<Event>(
    id: string,
    trigger: WaitableJson<Event>,
    options?: TaskOptions<Params> & { readonly rule?: TriggerRule },
  ): Output<Event>;

  /**
   * Adds a task that chooses which of its direct downstream tasks run. The others are skipped, except those that are
   * also reached from a chosen one. Its output is the list of ids it followed.
   *
   * @example
   * ```ts
   * const size = d.branch("size", { inputs: { rows } }, ({ rows }) => (rows.length > 1000 ? "large" : "small"));
   * d.task("large", { after: size }, () => loadInParts());
   * d.task("small", { after: size }, () => loadAtOnce());
   * ```
   */
  branch(id: string, choose: Handler<NoInputs, "allSuccess", Params, BranchResult>): Output<string[]>;
  branch<I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule>,
    choose: Handler<I, Rule, Params, BranchResult>,
  ): Output<string[]>;

  /**
   * Adds a task that ends this way when its condition is not met: a falsy result skips everything downstream.
   *
   * @example
   * ```ts
   * const workday = d.shortCircuit("workday", (_, ctx) => ctx.run.logicalDate?.getUTCDay() !== 0);
   * d.task("report", { after: workday }, () => publish());
   * ```
   */
  shortCircuit(id: string, condition: Handler<NoInputs, "allSuccess", Params, unknown>): Output<boolean>;
  shortCircuit<I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule> & ShortCircuitOptions,
    condition: Handler<I, Rule, Params, unknown>,
  ): Output<boolean>;

  /**
   * Adds a group: its tasks' ids begin with `id.`, and it is one box in the graph.
   *
   * @example
   * ```ts
   * const checks = d.group("checks", { after: rows }, (g) => {
   *   g.task("nulls", () => checkNulls());     // id "checks.nulls"
   *   g.task("ranges", () => checkRanges());
   * });
   * d.task("publish", { after: checks }, () => publish());
   * ```
   */
  group<T>(id: string, build: (g: DagBuilder<Params>) => T): Group<T>;
  group<T>(id: string, options: GroupOptions<Params>, build: (g: DagBuilder<Params>) => T): Group<T>;
}

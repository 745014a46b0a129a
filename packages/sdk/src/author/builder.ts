import type { Produced, ReturnsJson } from "../check/json.ts";
import type { TriggerRule } from "../manifest.ts";
import type { AnyParams, TaskContext } from "../runtime/context.ts";
import type { Control } from "../signal/control.ts";
import type { DefersWell } from "../trigger/deferral.ts";
import type { AnyInputs, Operator } from "../trigger/operator.ts";
import type { WaitableJson } from "../trigger/waitable.ts";
import type { Dag } from "./dag.ts";
import type { GroupOptions } from "./group-options.ts";
import type {
  AnyOutput,
  Group,
  HandlesFor,
  InputHandles,
  InputValues,
  Mapped,
  NoInputs,
  Output,
} from "./handle.ts";
import type { LabelField, LabelItem } from "./map-label.ts";
import type { Gathered, ItemOf, Over } from "./mapping.ts";
import type { MapDagOptions, SubDagOptions, WithoutParams } from "./sub-dag.ts";
import type { TaskOptions } from "./task-options.ts";

/** The work of a task: receives its inputs and the context, returns the output. */
export type Handler<I, Rule, Params, R> = (inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => R;

/** The options whose types flow into the handler. */
export interface Edges<I, Rule> {
  /** Outputs of other tasks, by the name under which the handler receives them. */
  readonly inputs?: I;
  /** When the task may start, by the states of its upstream tasks ("allSuccess"). Decides the type of the inputs. */
  readonly rule?: Rule;
}

/** The work of one instance of a mapped task: receives its item besides. */
export type MapHandler<T, I, Rule, Params, R> = (
  item: T,
  inputs: InputValues<I, Rule>,
  ctx: TaskContext<Params>,
) => R;

/** Names an item by its fields: `(file) => file.name`, or text with fields in it. */
export type MapLabelFunction<O> = (item: LabelItem<ItemOf<O>>) => string | LabelField;

export interface MapOptions<O> {
  /** The output of a task that is a list, a list, {@link zip} or {@link cross}: one instance per item. */
  readonly over: O;
  /** How many instances may be active at once in a run; of `mapDag`, how many items may be under way at once. */
  readonly limit?: number;
  /** What an instance is called: a field of its item, or text with fields in it. Read once, when the file is loaded. */
  readonly label?: MapLabelFunction<O>;
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

export interface TeardownOptions<T> {
  /** What `d.setup` returned: its result is the first that the teardown is given. */
  readonly of: Output<T>;
  /** true: a failing teardown fails the run (false). */
  readonly failsRun?: boolean;
}

export interface MapGroupOptions<O, Params = AnyParams> extends GroupOptions<Params> {
  /** The output of a task that is a list, a list, {@link zip} or {@link cross}: the whole group once per item. */
  readonly over: O;
  /** How many items may be under way at once: the next one begins when all tasks of another are through. */
  readonly limit?: number;
  /** What the instances of an item are called: see {@link MapOptions.label}. */
  readonly label?: MapLabelFunction<O>;
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

  /**
   * Adds a DAG as a task: each try makes a run of it, with these params, and waits for it without a worker. Its output is
   * the result of that DAG: what the handles are worth that its build function returned.
   *
   * @example
   * ```ts
   * const scores = dag("scores", { params: z.object({ region: z.string() }) }, (d) => d.task("score", () => [1, 2]));
   * const eu = d.dag("eu", scores, { params: { region: "eu" }, retries: 1 });             // Output<number[]>
   * const first = d.task("first", () => "us");
   * const us = d.dag("us", scores, { inputs: { first }, params: ({ first }) => ({ region: first }) });
   * d.task("best", { inputs: { eu, us } }, ({ eu, us }) => Math.max(...eu, ...us));
   * ```
   */
  dag<Conf, R>(id: string, dag: Dag<Conf, R> & WithoutParams<Conf>): Output<R>;
  dag<Conf, R, I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    dag: Dag<Conf, R>,
    options: TaskOptions<Params> & Edges<I, Rule> & SubDagOptions<NoInfer<Conf>, I, Rule, Params>,
  ): Output<R>;

  /**
   * As {@link map}, with a run of a DAG per item.
   *
   * @example
   * ```ts
   * const scores = dag("scores", { params: z.object({ region: z.string() }) }, (d) => d.task("score", () => 7));
   * const all = d.mapDag("all", scores, { over: regions, limit: 4, params: (region) => ({ region }) });
   * d.task("best", { inputs: { all } }, ({ all }) => Math.max(...all));
   * ```
   */
  mapDag<
    const O extends Over,
    Conf,
    R,
    I extends InputHandles = NoInputs,
    Rule extends TriggerRule = "allSuccess",
  >(
    id: string,
    dag: Dag<Conf, R>,
    options: TaskOptions<Params> &
      Edges<I, Rule> &
      MapOptions<O> &
      MapDagOptions<NoInfer<Conf>, ItemOf<O>, I, Rule, Params>,
  ): Mapped<R>;

  /**
   * Adds a task that skips the tasks directly after it unless its run is the latest that the schedule asks for: of a
   * run that is made up for, and of most of a backfill, only what does not come after it is done. Runs that the
   * schedule has not made always pass. Its output says whether it is the latest.
   *
   * @example
   * ```ts
   * const latest = d.latestOnly("latest", { after: rows });
   * d.task("mail", { after: latest }, () => publish());
   * ```
   */
  latestOnly(id: string, options?: TaskOptions<Params> & { readonly rule?: TriggerRule }): Output<boolean>;

  /**
   * Adds a task that runs once per item of a list. How long the list is may be known only when the run gets there. Its
   * output is the list of all results, in the order of the items; over an empty list it is skipped.
   *
   * @example
   * ```ts
   * const files = d.task("list", () => listFiles());                                  // Output<string[]>
   * const rows = d.map("load", { over: files, limit: 8, retries: 3 }, (file) => load(file));
   * d.task("total", { inputs: { rows } }, ({ rows }) => rows.reduce((sum, n) => sum + n, 0));
   * ```
   */
  map<const O extends Over, R, I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule> & MapOptions<O>,
    run: MapHandler<ItemOf<O>, I, Rule, Params, R> & ReturnsJson<R>,
  ): Mapped<Produced<R>>;

  /**
   * As {@link map}, with an operator per item: the function makes it, in the process that runs it.
   *
   * @example
   * ```ts
   * const loaded = d.mapAdd("load", { over: tables }, (table) => new Copy({ table, to: "warehouse" }));
   * ```
   */
  mapAdd<
    const O extends Over,
    R,
    Made,
    I extends InputHandles = NoInputs,
    Rule extends TriggerRule = "allSuccess",
  >(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule> & MapOptions<O>,
    make: (
      item: ItemOf<O>,
      inputs: InputValues<I, Rule>,
      ctx: TaskContext<Params>,
    ) => Operator<unknown, R, AnyInputs> & Made & ReturnsJson<R>,
  ): Mapped<Produced<R>>;

  /**
   * Adds a group that runs once per item of a list: inside, a task depends on those of its own item only, so that one
   * item can be through while another has not begun. `result` has the lists of what the build function returns. Maps
   * may be put into maps.
   *
   * @example
   * ```ts
   * const regions = d.mapGroup("regions", { over: names, limit: 4 }, (g, name) => {
   *   const rows = g.task("extract", { inputs: { name } }, ({ name }) => extract(name));
   *   return g.task("load", { inputs: { rows } }, ({ rows }) => load(rows));
   * });
   * d.task("report", { inputs: { loads: regions.result } }, ({ loads }) => report(loads));
   * ```
   */
  mapGroup<const O extends Over, T>(
    id: string,
    options: MapGroupOptions<O, Params>,
    build: (g: DagBuilder<Params>, item: Output<ItemOf<O>>) => T,
  ): Group<Gathered<T>>;

  /**
   * Adds a task that makes what others need: a cluster, a schema, a lock. Whoever comes after it, directly or not, runs only
   * if it has succeeded, whatever their rule.
   *
   * @example
   * ```ts
   * const cluster = d.setup("create_cluster", () => createCluster());
   * const rows = d.task("crunch", { inputs: { cluster } }, ({ cluster }) => crunch(cluster.url));
   * d.teardown("delete_cluster", { of: cluster }, (cluster) => deleteCluster(cluster.id));
   * d.task("report", { inputs: { rows } }, ({ rows }) => report(rows)); // does not wait for the teardown
   * ```
   */
  setup<R>(id: string, run: Handler<NoInputs, "allSuccess", Params, R> & ReturnsJson<R>): Output<Produced<R>>;
  setup<R, I extends InputHandles = NoInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule>,
    run: Handler<I, Rule, Params, R> & ReturnsJson<R>,
  ): Output<Produced<R>>;

  /**
   * Adds the task that clears away what a setup has made, when all that came after the setup so far has ended, however it
   * ended; not when the setup itself has not succeeded. Unless told so, its failure does not fail the run.
   */
  teardown<T, R, I extends InputHandles = NoInputs, Rule extends TriggerRule = "allDoneSetupSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule> & TeardownOptions<T>,
    run: ((made: T, inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => R) & ReturnsJson<R>,
  ): Output<Produced<R>>;
}

import type { Produced, ReturnsJson } from "../check/json.ts";
import type { TriggerRule } from "../manifest.ts";
import type { AnyParams, TaskContext } from "../runtime/context.ts";
import type { Control } from "../signal/control.ts";
import type { DefersWell } from "../trigger/deferral.ts";
import type { AnyInputs, Operator } from "../trigger/operator.ts";
import type { WaitableJson } from "../trigger/waitable.ts";
import type { ApprovalBuilder } from "./approval.ts";
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

/**
 * The function of a task: it receives the inputs and the context, and returns the output.
 * @example const hello: Handler<NoInputs, "allSuccess", AnyParams, string> = (_, ctx) => `hello ${ctx.run.id}`;
 */
export type Handler<I, Rule, Params, R> = (inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => R;

/**
 * The options of a task that decide the types of its inputs.
 * @example const edges: Edges<{ rows: Output<{ id: number }[]> }, "allDone"> = { inputs: { rows }, rule: "allDone" };
 */
export interface Edges<I, Rule> {
  /** Outputs of other tasks, by the name under which the handler receives them. */
  readonly inputs?: I;
  /** The trigger rule (default "allSuccess"), which also decides the types of the inputs. */
  readonly rule?: Rule;
}

/**
 * The function of a mapped task: it also receives the item.
 * @example const size: MapHandler<string, NoInputs, "allSuccess", AnyParams, number> = (item) => item.length;
 */
export type MapHandler<T, I, Rule, Params, R> = (
  item: T,
  inputs: InputValues<I, Rule>,
  ctx: TaskContext<Params>,
) => R;

/**
 * A function that builds the label of an item from its fields.
 * @example const label: MapLabelFunction<Output<{ name: string }[]>> = (file) => file.name;
 */
export type MapLabelFunction<O> = (item: LabelItem<ItemOf<O>>) => string | LabelField;

/**
 * Options of a mapped task.
 * @example const options: MapOptions<string[]> = { over: ["eu", "us"], limit: 2, label: (region) => region };
 */
export interface MapOptions<O> {
  /** The items: an output that is a list, a list, {@link zip} or {@link cross}. */
  readonly over: O;
  /** The maximum number of active instances per run; for `mapDag`, of unfinished items. */
  readonly limit?: number;
  /**
   * The label of an instance: a field of its item, or text with fields in it; evaluated once, when the file is loaded.
   */
  readonly label?: MapLabelFunction<O>;
}

/**
 * The direct downstream tasks that a branch follows; an empty choice skips all of them.
 * @example const choice: BranchChoice = ["load", "report"];
 */
export type BranchChoice = BranchTarget | readonly BranchTarget[] | null | undefined;

/**
 * The return value of a branch function: a choice, {@link skip} or {@link fail}.
 * @example const choose = (size: number): BranchResult => (size === 0 ? skip("no rows") : "load");
 */
export type BranchResult = BranchChoice | Control | Promise<BranchChoice | Control>;

/**
 * A task or group that a branch can choose, by full id or by handle.
 * @example const target: BranchTarget = rows;
 */
export type BranchTarget = string | AnyOutput | Group;

/**
 * Options of `d.shortCircuit`.
 * @example const options: ShortCircuitOptions = { respectRules: true };
 */
export interface ShortCircuitOptions {
  /** Skip only the direct downstream tasks and let trigger rules decide about the others (default false). */
  readonly respectRules?: boolean;
}

/**
 * Options of `d.teardown`.
 * @example const options: TeardownOptions<{ id: number }[]> = { of: rows, failsRun: true };
 */
export interface TeardownOptions<T> {
  /** The handle that `d.setup` returned; its output is the first argument of the teardown. */
  readonly of: Output<T>;
  /** Fail the run if the teardown fails (default false). */
  readonly failsRun?: boolean;
}

/**
 * Options of a mapped group.
 * @example const options: MapGroupOptions<string[]> = { over: ["eu", "us"], limit: 1, retries: 2 };
 */
export interface MapGroupOptions<O, Params = AnyParams> extends GroupOptions<Params> {
  /** The items: an output that is a list, a list, {@link zip} or {@link cross}. */
  readonly over: O;
  /** The maximum number of unfinished items; the next item starts when all tasks of another one have ended. */
  readonly limit?: number;
  /** The label of an item, as in {@link MapOptions.label}. */
  readonly label?: MapLabelFunction<O>;
}

/**
 * Options of `d.operator`; `inputs` is required if the operator declares its inputs.
 * @example const options: OperatorOptions<AnyInputs, "allDone", AnyParams> = { inputs: { rows }, rule: "allDone", retries: 3 };
 */
export type OperatorOptions<In, Rule extends TriggerRule, Params> = TaskOptions<Params> & {
  readonly rule?: Rule;
} & (string extends keyof In
    ? { readonly inputs?: InputHandles }
    : { readonly inputs: HandlesFor<In, Rule> });

type AddArguments<In, Rule extends TriggerRule, Params> = string extends keyof In
  ? [options?: OperatorOptions<In, Rule, Params>]
  : [options: OperatorOptions<In, Rule, Params>];

/**
 * Adds tasks to a DAG; a task can only name handles that exist already, so a DAG cannot have a cycle.
 *
 * @example
 * ```ts
 * function quality(d: DagBuilder, rows: Output<number>) {
 *   return d.task("check_rows", { inputs: { rows } }, ({ rows }) => (rows > 0 ? rows : fail("no rows")));
 * }
 * ```
 */
export interface DagBuilder<Params = AnyParams> extends ApprovalBuilder<Params> {
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
   * Adds a task from an operator.
   * @example const rows = d.operator("count", new Count({ table: "sales" }), { retries: 3 });
   */
  operator<R, O, In = AnyInputs, Rule extends TriggerRule = "allSuccess">(
    id: string,
    operator: Operator<unknown, R, In> & O & ReturnsJson<R> & DefersWell<O, R, In>,
    ...options: AddArguments<In, Rule, Params>
  ): Output<Produced<R>>;

  /**
   * Adds a task that waits for a trigger without a process; its output is the event.
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
   * Adds a task that chooses which of its direct downstream tasks run. The others are skipped unless they also follow a
   * chosen task. The output is the list of chosen ids.
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
   * Adds a task that skips everything downstream if its function returns a falsy value.
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
   * Adds a group; the ids of its tasks begin with `id.`.
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
   * Adds a DAG as a task: each try creates a run of that DAG and waits for it without a worker. The output is the
   * result of that run.
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
   * Like {@link map}, with a run of a DAG per item.
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
   * Adds a task that skips its direct downstream tasks unless its run is the newest scheduled run of the DAG. Runs
   * that are not scheduled always pass. The output tells whether the run is the newest.
   *
   * @example
   * ```ts
   * const latest = d.latestOnly("latest", { after: rows });
   * d.task("mail", { after: latest }, () => publish());
   * ```
   */
  latestOnly(id: string, options?: TaskOptions<Params> & { readonly rule?: TriggerRule }): Output<boolean>;

  /**
   * Adds a task that runs once per item of a list. The output is the list of results in the order of the items; the
   * task is skipped if the list is empty.
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
   * Like {@link map}, with an operator per item; the function creates it in the process that runs the item.
   * @example const loaded = d.mapOperator("load", { over: tables }, (table) => new Copy({ table, to: "warehouse" }));
   */
  mapOperator<
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
   * Adds a group that runs once per item of a list. Inside, a task depends only on tasks of the same item. `result` has
   * the lists of the outputs that the build function returns.
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
   * Adds a task that creates a resource, such as a cluster or a lock. All tasks downstream of it run only if it
   * succeeds, under any trigger rule.
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
   * Adds the task that removes the resource of a setup after all tasks downstream of that setup have ended, in any
   * state. It is skipped if the setup did not succeed, and its failure does not fail the run by default.
   *
   * @example
   * ```ts
   * const cluster = d.setup("create_cluster", () => createCluster());
   * d.teardown("delete_cluster", { of: cluster }, (cluster) => deleteCluster(cluster.id));
   * ```
   */
  teardown<T, R, I extends InputHandles = NoInputs, Rule extends TriggerRule = "allDoneSetupSuccess">(
    id: string,
    options: TaskOptions<Params> & Edges<I, Rule> & TeardownOptions<T>,
    run: ((made: T, inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => R) & ReturnsJson<R>,
  ): Output<Produced<R>>;
}

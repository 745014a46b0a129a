/**
 * A DAG as a task of another DAG: the task waits without a worker for a run of its own. Each try creates a new run; the
 * result of that run is the output of the task.
 */

import { DagDefinitionError, show, TaskError } from "../check/errors.ts";
import type { Json } from "../manifest.ts";
import type { TaskContext } from "../runtime/context.ts";
import { withoutFrames } from "../runtime/error-facts.ts";
import { PROGRAM, type SettledInput } from "../runtime/program.ts";
import { type Control, skip } from "../signal/control.ts";
import type { DagRunEvent } from "../trigger/builtin-triggers.ts";
import { type AnyInputs, Operator } from "../trigger/operator.ts";
import { DagRunTrigger } from "../trigger/run-triggers.ts";
import { makeRun, runFailed } from "../trigger/trigger-dag-run.ts";
import { attemptFacts } from "./call-context.ts";
import type { Dag } from "./dag.ts";
import { resultTasks, resultValue } from "./dag-result.ts";
import type { InputValues } from "./handle.ts";
import type { MappedFunction, TaskBody } from "./plan.ts";
import type { RawOptions } from "./task-options.ts";

/**
 * Options of `d.dag`: params for the run, as a value or as a function of the inputs; required if the DAG needs params.
 * @example const options: SubDagOptions<{ region: string }, NoInputs, "allSuccess", AnyParams> = { params: { region: "eu" } };
 */
export type SubDagOptions<Conf, I, Rule, Params> =
  NeedsParams<Conf> extends true
    ? { readonly params: SubDagParams<Conf, I, Rule, Params> }
    : { readonly params?: SubDagParams<Conf, I, Rule, Params> };

type SubDagParams<Conf, I, Rule, Params> =
  | Conf
  | ((inputs: InputValues<I, Rule>, ctx: TaskContext<Params>) => Conf | Promise<Conf>);

/**
 * Options of `d.mapDag`: params for the runs, as a function of the item.
 * @example const options: MapDagOptions<{ n: number }, number, NoInputs, "allSuccess", AnyParams> = { params: (n) => ({ n }) };
 */
export type MapDagOptions<Conf, T, I, Rule, Params> =
  NeedsParams<Conf> extends true
    ? { readonly params: MapDagParams<Conf, T, I, Rule, Params> }
    : { readonly params?: MapDagParams<Conf, T, I, Rule, Params> };

type MapDagParams<Conf, T, I, Rule, Params> = (
  item: T,
  inputs: InputValues<I, Rule>,
  ctx: TaskContext<Params>,
) => Conf | Promise<Conf>;

/**
 * A DAG that needs no params; for other DAGs the compiler asks for options.
 * @example const run = <Conf, R>(scores: Dag<Conf, R> & WithoutParams<Conf>) => d.dag("scores", scores);
 */
export type WithoutParams<Conf> =
  NeedsParams<Conf> extends true
    ? { readonly problem: "this DAG needs params: give them as the third argument, { params: … }" }
    : unknown;

type NeedsParams<Conf> = unknown extends Conf
  ? false
  : Record<never, never> extends Conf
    ? false
    : undefined extends Conf
      ? false
      : true;

interface SubDagArgs {
  readonly dag: Dag;
  readonly params: unknown;
}

class SubDagOperator extends Operator<SubDagArgs, Json, AnyInputs> {
  override async execute(ctx: TaskContext, inputs: AnyInputs) {
    const { dag, params } = this.args;
    const conf: unknown = typeof params === "function" ? await params(inputs, ctx) : params;
    const request = { dagId: dag.id, conf, logicalDate: null, child: true as const };
    const runId = await makeRun(ctx, request, dag[PROGRAM]);
    const trigger = new DagRunTrigger({ dagId: dag.id, runId, missing: "fail" });
    return this.defer({ trigger, method: "ended" });
  }

  async ended(ctx: TaskContext, event: DagRunEvent): Promise<Json | Control> {
    const { dagId, runId, state } = event;
    if (state !== "success") throw runFailed(event);
    const { result } = this.args.dag[PROGRAM];
    if (result === undefined) return null;
    const tasks = resultTasks(result);
    const end = await attemptFacts(ctx).host.runEnd({ dagId, runId, tasks });
    const of = (id: string): SettledInput => end?.tasks[id] ?? { state: "pending", value: undefined };
    const skipped = tasks.find((id) => of(id).state === "skipped");
    if (skipped !== undefined)
      return skip(
        `its result is the output of task ${skipped}, which was skipped in run ${runId} of dag ${dagId}`,
      );
    const missing = tasks.find((id) => of(id).state !== "success");
    if (missing === undefined) return resultValue(result, (id) => of(id).value ?? null);
    const { state: ending } = of(missing);
    // The run has the current version of the DAG; in the version of this task, another task had the result.
    const standing =
      ending === "pending" ? `it has no task ${missing} that has ended` : `its task ${missing} is ${ending}`;
    throw withoutFrames(
      new TaskError(
        "TW_DAG_RUN_FAILED",
        `run ${runId} of dag ${dagId} has no result: ${standing}; see why with \`tradewind runs show ${dagId} ${runId}\``,
      ),
    );
  }
}

interface SubDagTask {
  readonly body: TaskBody;
  readonly options: unknown;
}

/** The task of `d.dag`, and its remaining options. */
export function subDagTask(dag: unknown, given: unknown, where: string): SubDagTask {
  const child = checkedDag(dag, where);
  const { params, ...options } = Object(given) as RawOptions;
  const operator = new SubDagOperator({ dag: child, params });
  return {
    body: { kind: "operator", operator, dag: child.id },
    options: given === undefined ? given : options,
  };
}

/** The task of `d.mapDag`: one run per item. */
export function mapDagTask(dag: unknown, given: unknown, where: string): SubDagTask {
  const child = checkedDag(dag, where);
  const { params, ...options } = Object(given) as RawOptions;
  if (params !== undefined && typeof params !== "function") {
    throw new DagDefinitionError(
      "TW_BAD_OPTION",
      `${where}: params must be a function of the item, got ${show(params)}`,
    );
  }
  const make: MappedFunction = (item, inputs, ctx) =>
    new SubDagOperator({
      dag: child,
      params: params && (() => (params as MappedFunction)(item, inputs, ctx)),
    });
  return { body: { kind: "mapOperator", make, dag: child.id }, options };
}

function checkedDag(dag: unknown, where: string): Dag {
  if (typeof dag === "object" && dag !== null && PROGRAM in dag) return dag as Dag;
  const hint =
    dag === undefined
      ? "; is it defined below? A DAG cannot be inside itself, directly or through others, as when two files import each other"
      : "; import it from its file, or use TriggerDagRunOperator to run a DAG by its id";
  throw new DagDefinitionError("TW_BAD_OPTION", `${where}: expected a DAG, got ${show(dag)}${hint}`);
}

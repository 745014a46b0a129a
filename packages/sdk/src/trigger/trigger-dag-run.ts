import { attemptFacts } from "../author/call-context.ts";
import type { Dag } from "../author/dag.ts";
import { resultTasks, resultValue } from "../author/dag-result.ts";
import { DagDefinitionError, show, TaskError } from "../check/errors.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json } from "../manifest.ts";
import type { AnyParams, TaskContext } from "../runtime/context.ts";
import { withoutFrames } from "../runtime/error-facts.ts";
import { PROGRAM, type Program, type TriggerRunRequest } from "../runtime/program.ts";
import type { Duration } from "../schedule/duration.ts";
import { isoInstant, MOMENT_FORMS, type Moment } from "../schedule/instant.ts";
import type { DagRunEvent, DagRunState } from "./builtin-triggers.ts";
import { Operator } from "./operator.ts";
import { DagRunTrigger } from "./run-triggers.ts";

export interface TriggerDagRunArgs {
  /** The DAG to run, by its id; or `dag`. */
  readonly dagId?: string;
  /** The DAG itself, imported from its file: then `conf` is checked by the compiler, and its result is typed. */
  readonly dag?: Dag;
  /** The conf of the new run ({}). */
  readonly conf?: AnyParams;
  /** The id of the new run; one that exists already is taken as it is. By default one that no other try makes. */
  readonly runId?: string;
  /** The logical date of the new run (none). */
  readonly logicalDate?: Moment;
  /** Waits for its end, without a worker (false). */
  readonly wait?: boolean;
  /** With `dagId` and `wait`: the ids of tasks of that run whose outputs are passed on. */
  readonly outputs?: readonly string[];
  /** The states that fail the task when it has waited (["failed"]). */
  readonly failOn?: readonly DagRunState[];
  /** The longest wait. */
  readonly timeout?: Duration;
}

/**
 * The run that was made; `state` is null when it was not waited for. With outputs, null stands for those of a run that
 * has not succeeded, and for that of a task that has none.
 */
export type TriggeredRun<Outputs = undefined> = {
  readonly dagId: string;
  readonly runId: string;
  readonly state: DagRunState | null;
} & ([Outputs] extends [undefined] ? unknown : { readonly outputs: Outputs | null });

/** What is passed on of a run: the result of a DAG that was given as such, or the outputs that were asked for. */
export type PassedOn<A> = A extends { readonly wait: true }
  ? A extends { readonly dag: Dag<infer _Conf, infer Result> }
    ? Result
    : A extends { readonly outputs: readonly (infer Id)[] }
      ? { readonly [K in Id & string]: Json }
      : undefined
  : undefined;

/** What the compiler asks besides: the conf fits the DAG, and exactly one of `dag` and `dagId` is given. */
type Fitting<A> = A extends { readonly dag: Dag<infer Conf, infer _Result> }
  ? { readonly dagId?: undefined; readonly outputs?: undefined } & ([unknown] extends [Conf]
      ? unknown
      : Record<never, never> extends Exclude<Conf, undefined>
        ? { readonly conf?: Conf }
        : { readonly conf: Conf })
  : unknown;

/**
 * Makes a run of another DAG, and waits for it if asked to. What it waited for can be passed on: the result of a DAG that
 * is given as a value, or the outputs of tasks that are named.
 *
 * @example
 * ```ts
 * d.add("report", new TriggerDagRunOperator({ dagId: "report", conf: { region: "eu" }, wait: true, timeout: "6h" }));
 * const sales = d.add("sales", new TriggerDagRunOperator({ dagId: "sales", wait: true, outputs: ["count"] }));
 * d.task("tell", { inputs: { sales } }, ({ sales }, ctx) => ctx.log.info("sold", { rows: sales.outputs?.count ?? null }));
 * ```
 */
export class TriggerDagRunOperator<const A extends TriggerDagRunArgs = TriggerDagRunArgs> extends Operator<
  A,
  TriggeredRun<PassedOn<A>>
> {
  constructor(args: A & Fitting<A>) {
    super(args);
    check(args);
  }

  override async execute(ctx: TaskContext) {
    const { dag, conf, logicalDate, wait, timeout }: TriggerDagRunArgs = this.args;
    const dagId = dagIdOf(this.args);
    const request = {
      dagId,
      ...(this.args.runId !== undefined && { runId: this.args.runId }),
      conf,
      logicalDate: isoInstant(logicalDate),
    };
    // Another run is waited for, not made here, unless it is a part of the test.
    const runId = await makeRun(ctx, request, wait ? dag?.[PROGRAM] : undefined);
    if (!wait) return { dagId, runId, state: null } as TriggeredRun<PassedOn<A>>;
    const trigger = new DagRunTrigger({ dagId, runId, missing: "fail" });
    return this.defer({ trigger, method: "ended", timeout });
  }

  /** Where it goes on when the run has ended. */
  async ended(ctx: TaskContext, event: DagRunEvent): Promise<TriggeredRun<PassedOn<A>>> {
    const { dagId, runId, state } = event;
    if ((this.args.failOn ?? ["failed"]).includes(state)) throw runFailed(event);
    const run = { dagId, runId, state };
    const { dag, outputs }: TriggerDagRunArgs = this.args;
    if (dag === undefined && outputs === undefined) return run as TriggeredRun<PassedOn<A>>;
    const of = dag?.[PROGRAM].result ?? {
      members: Object.fromEntries((outputs ?? []).map((id) => [id, id])),
    };
    const end =
      state === "success"
        ? await attemptFacts(ctx).host.runEnd({ dagId, runId, tasks: resultTasks(of) })
        : null;
    const unknown = end === null ? undefined : outputs?.find((id) => !Object.hasOwn(end.tasks, id));
    if (unknown !== undefined) {
      throw withoutFrames(
        new TaskError(
          "TW_TASK_UNKNOWN",
          `run ${runId} of dag ${dagId} has no task ${show(unknown)}; check the ids in outputs of TriggerDagRunOperator`,
        ),
      );
    }
    const passed = end === null ? null : resultValue(of, (id) => end.tasks[id]?.value ?? null);
    return { ...run, outputs: passed } as unknown as TriggeredRun<PassedOn<A>>;
  }
}

/** The run that a try of a task has made, or finds again: an answer that was lost makes no second one. */
export async function makeRun(
  ctx: TaskContext,
  request: Omit<TriggerRunRequest, "runId" | "conf"> & { readonly runId?: string; readonly conf: unknown },
  program?: Program,
): Promise<string> {
  const { dagId } = request;
  const wanted = {
    ...request,
    runId: request.runId ?? (await ownRunId(ctx)),
    conf: jsonCopy(request.conf ?? {}, CONF),
  };
  const { runId, created, isPaused } = await attemptFacts(ctx)
    .host.triggerRun(wanted, program)
    .catch((refusal: unknown) => Promise.reject(withoutFrames(refusal)));
  ctx.log.info(`${created ? "made" : "found"} run ${runId} of dag ${dagId}`);
  if (isPaused) {
    ctx.log.warn(
      `dag ${dagId} is paused: its run does not begin before that ends; \`tradewind dags unpause ${dagId}\``,
    );
  }
  return runId;
}

/** A run that was waited for has not ended well. */
export function runFailed({ dagId, runId, state }: DagRunEvent): TaskError {
  return withoutFrames(
    new TaskError(
      "TW_DAG_RUN_FAILED",
      `run ${runId} of dag ${dagId} ended as ${state}; see why with \`tradewind runs show ${dagId} ${runId}\``,
    ),
  );
}

function dagIdOf({ dag, dagId }: TriggerDagRunArgs): string {
  return dag?.id ?? (dagId as string);
}

function check({ dag, dagId, logicalDate, outputs, wait }: TriggerDagRunArgs): void {
  const refuse = (problem: string) => {
    throw new DagDefinitionError("TW_BAD_OPTION", `TriggerDagRunOperator: ${problem}`);
  };
  if (logicalDate !== undefined && isoInstant(logicalDate) === null)
    refuse(`logicalDate must be ${MOMENT_FORMS}, got ${show(logicalDate)}`);
  if ((dag === undefined) === (dagId === undefined)) refuse("give either dagId or dag");
  if (dag !== undefined && !(PROGRAM in Object(dag)))
    refuse(`dag must be what dag() returned, got ${show(dag)}; check the import`);
  if (outputs === undefined) return;
  if (!Array.isArray(outputs) || !outputs.every((id) => typeof id === "string" && id !== ""))
    refuse(`outputs must be a list of task ids, got ${show(outputs)}`);
  if (dag !== undefined) refuse("with dag, outputs are what its build function returns; leave outputs out");
  if (wait !== true) refuse("outputs are those of a run that was waited for; add wait: true");
}

const CONF = {
  root: "conf",
  notJson: (message: string) => new TaskError("TW_STEP_NOT_JSON", message),
  tooLarge: (message: string) => new TaskError("TW_STEP_TOO_LARGE", message),
};

/**
 * The same whenever this try asks, so that an answer that was lost does not make a second run; another at every other
 * try, whose run is another one.
 */
async function ownRunId(ctx: TaskContext): Promise<string> {
  const { run, taskId, mapIndex, tryNumber } = ctx;
  const maker = JSON.stringify([run.dagId, run.id, taskId, mapIndex, tryNumber]);
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(maker));
  const hex = [...new Uint8Array(hash, 0, 12)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `triggered__${run.runAfter.toISOString()}__${hex}`;
}

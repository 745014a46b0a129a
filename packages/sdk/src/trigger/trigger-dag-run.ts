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

/**
 * Arguments of a {@link TriggerDagRunOperator}.
 * @example const args: TriggerDagRunArgs = { dagId: "report", conf: { region: "eu" }, wait: true };
 */
export interface TriggerDagRunArgs {
  /** The id of the DAG to run; give this or `dag`. */
  readonly dagId?: string;
  /** The DAG to run, imported from its file: the compiler checks `conf` and types the result. */
  readonly dag?: Dag;
  /** The conf of the new run (default {}). */
  readonly conf?: AnyParams;
  /** The id of the new run; an existing run of that id is used (default: an id that is unique per try). */
  readonly runId?: string;
  /** The logical date of the new run (default none). */
  readonly logicalDate?: Moment;
  /** Wait for the end of the run without a worker (default false). */
  readonly wait?: boolean;
  /** With `dagId` and `wait`: the ids of tasks of that run whose outputs are returned. */
  readonly outputs?: readonly string[];
  /** The states of the run that fail the task after the wait (default ["failed"]). */
  readonly failOn?: readonly DagRunState[];
  /** The maximum duration of the wait. */
  readonly timeout?: Duration;
}

/**
 * The output of a {@link TriggerDagRunOperator}; `state` is null without `wait`, `outputs` is null unless the run
 * succeeded.
 * @example const isDone = (run: TriggeredRun) => run.state === "success";
 */
export type TriggeredRun<Outputs = undefined> = {
  readonly dagId: string;
  readonly runId: string;
  readonly state: DagRunState | null;
} & ([Outputs] extends [undefined] ? unknown : { readonly outputs: Outputs | null });

/**
 * The outputs that a {@link TriggerDagRunOperator} returns: the result of `dag`, or the outputs of the named tasks.
 * @example const passed: PassedOn<{ dagId: "sales"; wait: true; outputs: ["count"] }> = { count: 7 };
 */
export type PassedOn<A> = A extends { readonly wait: true }
  ? A extends { readonly dag: Dag<infer _Conf, infer Result> }
    ? Result
    : A extends { readonly outputs: readonly (infer Id)[] }
      ? { readonly [K in Id & string]: Json }
      : undefined
  : undefined;

/** Further checks of the compiler: the conf matches the DAG, and exactly one of `dag` and `dagId` is given. */
type Fitting<A> = A extends { readonly dag: Dag<infer Conf, infer _Result> }
  ? { readonly dagId?: undefined; readonly outputs?: undefined } & ([unknown] extends [Conf]
      ? unknown
      : Record<never, never> extends Exclude<Conf, undefined>
        ? { readonly conf?: Conf }
        : { readonly conf: Conf })
  : unknown;

/**
 * An operator that creates a run of another DAG and, with `wait`, waits for it and returns its outputs.
 * @see docs/guides/subdags.md
 * @example d.operator("report", new TriggerDagRunOperator({ dagId: "report", conf: { region: "eu" }, wait: true, timeout: "6h" }));
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
    // In a test, a loaded DAG runs in this process only if it is waited for.
    const runId = await makeRun(ctx, request, wait ? dag?.[PROGRAM] : undefined);
    if (!wait) return { dagId, runId, state: null } as TriggeredRun<PassedOn<A>>;
    const trigger = new DagRunTrigger({ dagId, runId, missing: "fail" });
    return this.defer({ trigger, method: "ended", timeout });
  }

  /** The method that resumes after the run has ended. */
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

/** Creates the run of a try, or finds it if the response to an earlier call was lost. */
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
    ctx.log.warn(`dag ${dagId} is paused: its run starts after \`tradewind dags unpause ${dagId}\``);
  }
  return runId;
}

/** The error for a run that did not end in an accepted state. */
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
    refuse(`dag must be the result of dag(), got ${show(dag)}; check the import`);
  if (outputs === undefined) return;
  if (!Array.isArray(outputs) || !outputs.every((id) => typeof id === "string" && id !== ""))
    refuse(`outputs must be a list of task ids, got ${show(outputs)}`);
  if (dag !== undefined) refuse("with dag, the outputs are the result of its build function; remove outputs");
  if (wait !== true) refuse("outputs need a run that is waited for; add wait: true");
}

const CONF = {
  root: "conf",
  notJson: (message: string) => new TaskError("TW_STEP_NOT_JSON", message),
  tooLarge: (message: string) => new TaskError("TW_STEP_TOO_LARGE", message),
};

/** Stable within a try, so that a lost response does not create a second run; different for every other try. */
async function ownRunId(ctx: TaskContext): Promise<string> {
  const { run, taskId, mapIndex, tryNumber } = ctx;
  const maker = JSON.stringify([run.dagId, run.id, taskId, mapIndex, tryNumber]);
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(maker));
  const hex = [...new Uint8Array(hash, 0, 12)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `triggered__${run.runAfter.toISOString()}__${hex}`;
}

import type { DagRunEvent, DagRunState } from "./builtin-triggers.ts";
import { attemptFacts } from "./call-context.ts";
import type { TaskContext } from "./context.ts";
import type { Duration } from "./duration.ts";
import { DagDefinitionError, show, TaskError } from "./errors.ts";
import { isoInstant, MOMENT_FORMS, type Moment } from "./instant.ts";
import type { Json } from "./manifest.ts";
import { Operator } from "./operator.ts";
import { jsonCopy } from "./output-check.ts";
import { DagRunTrigger } from "./run-triggers.ts";

export interface TriggerDagRunArgs {
  readonly dagId: string;
  /** The conf of the new run ({}). */
  readonly conf?: Readonly<Record<string, Json>>;
  /** The id of the new run; one that exists already is taken as it is. By default one that no other try makes. */
  readonly runId?: string;
  /** The logical date of the new run (none). */
  readonly logicalDate?: Moment;
  /** Waits for its end, without a worker (false). */
  readonly wait?: boolean;
  /** The states that fail the task when it has waited (["failed"]). */
  readonly failOn?: readonly DagRunState[];
  /** The longest wait. */
  readonly timeout?: Duration;
}

/** The run that was made; `state` is null when it was not waited for. */
export interface TriggeredRun {
  readonly dagId: string;
  readonly runId: string;
  readonly state: DagRunState | null;
}

/**
 * Makes a run of another DAG, and waits for it if asked to.
 *
 * @example
 * ```ts
 * d.add("report", new TriggerDagRunOperator({ dagId: "report", conf: { region: "eu" }, wait: true, timeout: "6h" }));
 * ```
 */
export class TriggerDagRunOperator extends Operator<TriggerDagRunArgs, TriggeredRun> {
  constructor(args: TriggerDagRunArgs) {
    super(args);
    const { logicalDate } = args;
    if (logicalDate !== undefined && isoInstant(logicalDate) === null) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `TriggerDagRunOperator: logicalDate must be ${MOMENT_FORMS}, got ${show(logicalDate)}`,
      );
    }
  }

  override async execute(ctx: TaskContext) {
    const { dagId, conf, logicalDate, wait, timeout } = this.args;
    const { runId, created } = await attemptFacts(ctx).host.triggerRun({
      dagId,
      runId: this.args.runId ?? (await ownRunId(ctx)),
      conf: jsonCopy(conf ?? {}, CONF),
      logicalDate: isoInstant(logicalDate),
    });
    ctx.log.info(`${created ? "made" : "found"} run ${runId} of dag ${dagId}`);
    if (!wait) return { dagId, runId, state: null };
    return this.defer({ trigger: new DagRunTrigger({ dagId, runId }), method: "ended", timeout });
  }

  /** Where it goes on when the run has ended. */
  ended(_ctx: TaskContext, { dagId, runId, state }: DagRunEvent): TriggeredRun {
    if (!(this.args.failOn ?? ["failed"]).includes(state)) return { dagId, runId, state };
    throw new TaskError("TW_DAG_RUN_FAILED", `run ${runId} of dag ${dagId} ended as ${state}`);
  }
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

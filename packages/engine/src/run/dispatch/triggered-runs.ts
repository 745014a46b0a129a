/**
 * Runs that tasks trigger, and their results. They are created like all runs, with a parent; the run of a sub-DAG is a part
 * of its parent: see store/run/child-runs.ts.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunEndRequest, TriggeredRunFacts, TriggerRunRequest } from "@tradewind/sdk/program";
import type { AttemptPlace, FoundRun, TaskServices } from "../../execute/contract.ts";
import { wholeState } from "../../model/index.ts";
import { EngineError } from "../../service/errors.ts";
import type { Connection, Transaction } from "../../store/database/database.ts";
import { findDag } from "../../store/list/dags.ts";
import {
  dagsAround,
  lockParent,
  type ParentPlace,
  type ParentRun,
  readStanding,
} from "../../store/run/child-runs.ts";
import { createRun } from "../../store/run/run-create.ts";

/** The task chooses the run id, the same in every attempt of a try: an existing run with this id is the same run. */
export async function makeTriggeredRun(
  tx: Transaction,
  request: TriggerRunRequest,
  by: AttemptPlace | null,
): Promise<TriggeredRunFacts> {
  const { dagId, runId, logicalDate } = request;
  const around = request.child ? await parentOf(tx, request, by) : null;
  const result = await createRun(tx, {
    dagId,
    runId,
    logicalDate: logicalDate === null ? null : new Date(logicalDate),
    interval: around && intervalOf(around),
    runAfter: null,
    conf: request.conf as { readonly [key: string]: Json },
    note: null,
    triggeredBy: "operator",
    triggeringUser: null,
    ...(by && { parent: placeOf(by, around) }),
  });
  if (result.kind === "created") {
    // An invalid conf rolls the new run back. An existing run is kept, even if the params of its DAG have changed.
    const dag = await findDag(tx, dagId);
    await checkConf(request, dag);
    return { runId, created: true, ...(dag?.is_paused && { isPaused: true }) };
  }
  if (result.kind === "conflict" && result.on === "run_id") return { runId, created: false };
  if (result.kind === "conflict")
    throw new EngineError(
      "TRIGGERED_RUN_EXISTS",
      `DAG "${dagId}" already has the run "${result.existingRunId}" for ${logicalDate}. Trigger it without a logical date, or with another.`,
    );
  throw new EngineError(
    "TRIGGERED_DAG_UNKNOWN",
    `There is no DAG "${dagId}" that could be run. Check its id, and that its file still gives it: a DAG has to be exported.`,
  );
}

/**
 * Only the current attempt may create the run of a sub-DAG. A DAG inside itself would never end, or would wait forever for
 * the outer run to free a slot among the DAG's active runs.
 */
async function parentOf(
  tx: Transaction,
  { dagId }: TriggerRunRequest,
  by: AttemptPlace | null,
): Promise<ParentRun> {
  const parent = by === null ? undefined : await lockParent(tx, by);
  if (by === null || parent === undefined)
    throw new EngineError("TASK_ATTEMPT_SUPERSEDED", "This attempt is no longer the current one.");
  const around = await dagsAround(tx, by.runId);
  if (!around.includes(dagId)) return parent;
  throw new EngineError(
    "SUB_DAG_CYCLE",
    `DAG "${dagId}" cannot be a sub-DAG of itself: ${[...around, dagId].join(" > ")}. Trigger it with TriggerDagRunOperator, without waiting for it.`,
  );
}

function intervalOf({ interval_end, interval_start }: ParentRun) {
  return interval_start === null || interval_end === null
    ? null
    : { start: interval_start, end: interval_end };
}

function placeOf(
  { runId, taskId, mapIndex, tryNumber }: AttemptPlace,
  around: ParentRun | null,
): ParentPlace {
  return { dagRunId: runId, taskId, mapIndex, tryNumber: around === null ? null : tryNumber };
}

/** As the API does, before the run is visible: with an invalid conf every task would fail. */
async function checkConf(
  { conf, dagId }: TriggerRunRequest,
  dag: Awaited<ReturnType<typeof findDag>>,
): Promise<void> {
  const schema = dag?.manifest?.paramsSchema ?? null;
  if (dag === undefined || dag.version_id === null || schema === null) return;
  // The validator is as large as the rest of the scheduler, and rarely needed.
  const { ParamsValidator } = await import("../../service/params-validator.ts");
  const problems = new ParamsValidator().problems({ id: dag.version_id, schema }, conf);
  if (problems.length === 0) return;
  const text = problems.map(({ path, problem }) => `${["conf", ...path].join(".")}: ${problem}`).join("; ");
  throw new EngineError(
    "TRIGGERED_CONF_INVALID",
    `The conf does not fit the params of DAG "${dagId}": ${text}.`,
  );
}

/** @param output Reads an output, small or large. */
export async function readRunEnd(
  db: Connection,
  request: RunEndRequest,
  output: TaskServices["output"],
): Promise<FoundRun | null> {
  const rows = await readStanding(db, request);
  const [first] = rows;
  if (first === undefined) return null;
  const tasks: FoundRun["tasks"][number][] = [];
  for (const { dag_run_id, states, task_id } of rows) {
    // A task without an instance does not belong to the DAG of that run.
    if (task_id === null || states.length === 0) continue;
    const state = wholeState(states);
    const value = state === "success" ? await output(dag_run_id, task_id, null) : undefined;
    tasks.push({ taskId: task_id, state, value });
  }
  return { state: first.run_state, tasks };
}

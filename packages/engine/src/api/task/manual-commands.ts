/** Manual commands: start, restart or stop a task of a run, and close a run. The owner of the run executes them. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import {
  type ManualCommandResult,
  type ManualRunCommand,
  type OrderAction,
  submitManualCommand,
} from "../../store/drive/manual-commands.ts";
import { runParams } from "../run/dag-runs.ts";
import { principalOf } from "../server/auth.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { create } from "../server/idempotent.ts";
import { conflict, notFound, Problem } from "../server/problem.ts";
import { taskParams } from "./task-instances.ts";

const manualCommandDocument = z
  .object({
    dag_id: z.string(),
    dag_run_id: z.string(),
    /** null: the run itself. */
    task_id: z.string().nullable(),
    action: z.enum(["start", "restart", "stop"]),
    /** Version of the signal in namespace "action"; null: none, because the tasks to start were cleared instead. */
    version: z.number().nullable(),
    /** Tasks that rerun because the run had ended. */
    cleared: z.array(z.object({ task_id: z.string(), map_index: z.number() })),
    /** The run had ended and is open again as a whole, with its rules and ticks, until it is closed. */
    reopened: z.boolean(),
  })
  .meta({ id: "RunOrder" });

type Given = Extract<ManualCommandResult, { kind: "ordered" | "cleared" }>;

const RUN = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id";
const ACTIONS: readonly OrderAction[] = ["start", "restart", "stop"];

export const manualCommands: Resource = (app, options) => {
  const response = { 202: manualCommandDocument };

  for (const action of ACTIONS) {
    app.post(
      `${RUN}/taskInstances/:task_id/${action}`,
      { schema: { params: taskParams, response, tags: ["Task Instance"] } },
      (request, reply) => {
        const { dag_id: dagId, dag_run_id: runId, task_id: taskId } = request.params;
        const user = principalOf(request).name;
        return submitCommand(options, { request, reply }, { dagId, runId, taskId, action, user });
      },
    );
  }

  app.post(`${RUN}/stop`, { schema: { params: runParams, response, tags: ["DagRun"] } }, (request, reply) => {
    const { dag_id: dagId, dag_run_id: runId } = request.params;
    const user = principalOf(request).name;
    return submitCommand(options, { request, reply }, { dagId, runId, taskId: null, action: "stop", user });
  });
};

/** Wakes the owner after the commit, but not for a stored response. */
async function submitCommand(
  options: ApiOptions,
  call: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  wish: ManualRunCommand,
) {
  let given: Given | undefined;
  const { body } = await create(options, call, async (tx) => {
    given = accepted(await submitManualCommand(tx, wish), wish);
    const { action, dagId, runId, taskId } = wish;
    const affected = given.kind === "cleared" ? given.affected : [];
    const { version } = given;
    return {
      status: 202,
      body: {
        dag_id: dagId,
        dag_run_id: runId,
        task_id: taskId,
        action,
        version,
        reopened: given.kind === "cleared" && given.isDriven,
        cleared: affected.map((key) => ({ task_id: key.taskId, map_index: key.mapIndex })),
      },
      deed: {
        action: taskId === null ? "stop_dag_run" : `${action}_task_instance`,
        dagId,
        runId,
        ...(taskId === null ? {} : { taskId }),
        isTold: version !== null,
        details: { version, ...(affected.length === 0 ? {} : { instances: affected.length }) },
      },
    };
  });
  if (given !== undefined) {
    options.notify({ kind: "run_edited", dagRunIds: [given.dagRunId] });
    if (given.version !== null) options.notify({ kind: "signals_sent" });
  }
  return body;
}

function accepted(result: ManualCommandResult, { dagId, runId, taskId }: ManualRunCommand): Given {
  const run = `Run "${runId}" of DAG "${dagId}"`;
  switch (result.kind) {
    case "ordered":
    case "cleared":
      return result;
    case "unknown_run":
      throw notFound(`DAG "${dagId}" has no run "${runId}"`);
    case "unknown_task":
      throw notFound(`${run} has no task "${taskId}"`);
    case "not_driven":
      throw new Problem(
        409,
        "RUN_NOT_DRIVEN",
        `${run} is not signal-driven and ends when its tasks have ended. End it now with: tradewind runs cancel ${dagId} ${runId}`,
      );
    case "never_began":
      throw conflict(
        `${run} ended before its start (${result.state}). Start another run with: tradewind dags trigger ${dagId}`,
      );
    case "over":
      throw new Problem(
        409,
        "RUN_OVER",
        taskId === null
          ? `${run} has ended (${result.state})`
          : `${run} has ended (${result.state}): none of its tasks is running. Rerun the task with: tradewind tasks start ${dagId} ${runId} ${taskId}`,
      );
  }
}

/** What can be done to task instances: mark, note, clear; each with its dry run. */

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { clearTasks } from "../../store/edit/clear-tasks.ts";
import type { TaskSelection } from "../../store/edit/edited-instances.ts";
import { markTasks } from "../../store/edit/mark-tasks.ts";
import { setTaskNote } from "../../store/edit/notes.ts";
import { listTaskInstances, readInstances, type TaskInstanceRow } from "../../store/list/task-instances.ts";
import { requireDagExists } from "../dag/dags.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { instanceList, showAllInstances } from "../server/documents.ts";
import { id, instant, many, mapIndex, note } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, invalid, notFound } from "../server/problem.ts";
import { mappedParams, taskParams } from "./task-instances.ts";
import { selectInstances } from "./task-selection.ts";

const patchBody = z.strictObject({
  new_state: z.enum(["success", "failed", "skipped"]).nullish(),
  note: note.optional(),
  include_upstream: z.boolean().default(false),
  include_downstream: z.boolean().default(false),
  include_future: z.boolean().default(false),
  include_past: z.boolean().default(false),
});

const clearBody = z.strictObject({
  dry_run: z.boolean().default(true),
  start_date: instant.nullish(),
  end_date: instant.nullish(),
  only_failed: z.boolean().default(true),
  only_running: z.boolean().default(false),
  reset_dag_runs: z.boolean().default(true),
  task_ids: z
    .array(z.union([id, z.tuple([id, mapIndex])]))
    .max(10_000)
    .nullish(),
  dag_run_id: id.nullish(),
  include_upstream: z.boolean().default(false),
  include_downstream: z.boolean().default(false),
  include_future: z.boolean().default(false),
  include_past: z.boolean().default(false),
  run_on_latest_version: z.boolean().nullish(),
  prevent_running_task: z.boolean().default(false),
  note: note.optional(),
});

const mask = { update_mask: many(z.enum(["new_state", "note"])).optional() };
const patchQuery = z.strictObject({ ...mask, map_index: mapIndex.optional() });
const maskQuery = z.strictObject(mask);

const BASE = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances/:task_id";

export const taskInstanceEdits: Resource = (app, options) => {
  const tags = ["Task Instance"];
  const response = { 200: instanceList };

  for (const dryRun of [false, true]) {
    const suffix = dryRun ? "/dry_run" : "";
    app.patch(
      `${BASE}${suffix}`,
      { schema: { params: taskParams, querystring: patchQuery, body: patchBody, response, tags } },
      (request) =>
        patch(options, request, {
          body: request.body,
          dryRun,
          index: request.query.map_index ?? null,
          mask: request.query.update_mask,
          params: request.params,
        }),
    );
    app.patch(
      `${BASE}/:map_index${suffix}`,
      { schema: { params: mappedParams, querystring: maskQuery, body: patchBody, response, tags } },
      (request) =>
        patch(options, request, {
          body: request.body,
          dryRun,
          index: request.params.map_index,
          mask: request.query.update_mask,
          params: request.params,
        }),
    );
  }

  app.post(
    "/api/v2/dags/:dag_id/clearTaskInstances",
    { schema: { params: z.object({ dag_id: id }), body: clearBody, response, tags } },
    (request) => clear(options, request, request.params.dag_id, request.body),
  );
};

interface Patch {
  readonly params: z.output<typeof taskParams>;
  /** null: every instance of the task. */
  readonly index: number | null;
  readonly body: z.output<typeof patchBody>;
  readonly mask: readonly string[] | undefined;
  readonly dryRun: boolean;
}

/** Answers the instances it was asked about and those that changed with them. */
async function patch(
  options: ApiOptions,
  request: FastifyRequest,
  { body, dryRun, index, mask, params }: Patch,
) {
  const state = (mask?.includes("new_state") ?? true) ? (body.new_state ?? undefined) : undefined;
  const newNote = (mask?.includes("note") ?? true) ? body.note : undefined;
  if (state === undefined && newNote === undefined)
    throw invalid(["body"], "Give a new_state or a note to set");
  const task: TaskSelection = { taskId: params.task_id, mapIndex: index };
  const outcome = await change(options, request, async (tx) => {
    const reach = {
      dagId: params.dag_id,
      runId: params.dag_run_id,
      past: body.include_past,
      future: body.include_future,
    };
    const wish = {
      reach,
      tasks: [task],
      upstream: body.include_upstream,
      downstream: body.include_downstream,
    };
    const { runs, selection } = await selectInstances(tx, wish);
    const run = runs.find((each) => each.run_id === params.dag_run_id)!;
    const own = await listTaskInstances(
      tx,
      {
        dagIds: [params.dag_id],
        runIds: [params.dag_run_id],
        taskIds: [params.task_id],
        mapIndexes: index === null ? undefined : [index],
      },
      { limit: 1000, offset: 0 },
    );
    if (own.rows.length === 0) {
      throw notFound(
        `Task "${params.task_id}" of run "${params.dag_run_id}" has no such instance, or the run has not started yet`,
      );
    }
    const affected =
      state === undefined ? [] : (await markTasks(tx, { runs: selection, state, dryRun })).affected;
    if (newNote !== undefined && !dryRun) await setTaskNote(tx, { dagRunId: run.id, ...task }, newNote);
    const keys = [
      ...own.rows.map((row) => ({ dagRunId: row.dag_run_id, taskId: row.task_id, mapIndex: row.map_index })),
      ...affected,
    ];
    const result = {
      dagRunIds: [...new Set(affected.map((key) => key.dagRunId))],
      rows: distinct(await readInstances(tx, keys)),
    };
    if (dryRun) return { result };
    const details = {
      ...(state === undefined ? {} : { new_state: state, instances: affected.length }),
      note: newNote !== undefined,
    };
    const deed = {
      action: "patch_task_instance",
      dagId: params.dag_id,
      runId: params.dag_run_id,
      taskId: params.task_id,
      mapIndex: index ?? undefined,
      details,
    };
    return { result, deed };
  });
  if (!dryRun && outcome.dagRunIds.length > 0)
    options.notify({ kind: "run_edited", dagRunIds: outcome.dagRunIds });
  return showAllInstances(outcome.rows);
}

async function clear(
  options: ApiOptions,
  request: FastifyRequest,
  dagId: string,
  body: z.output<typeof clearBody>,
) {
  if (body.start_date != null && body.end_date != null && body.start_date > body.end_date) {
    throw invalid(["body", "end_date"], "end_date lies before start_date");
  }
  if ((body.include_past || body.include_future) && body.dag_run_id == null) {
    throw invalid(["body", "dag_run_id"], "include_past and include_future need a dag_run_id to start from");
  }
  const tasks =
    body.task_ids?.map((task) =>
      typeof task === "string" ? { taskId: task, mapIndex: null } : { taskId: task[0], mapIndex: task[1] },
    ) ?? null;
  const outcome = await change(options, request, async (tx) => {
    await requireDagExists(tx, dagId);
    const reach = {
      dagId,
      runId: body.dag_run_id ?? undefined,
      from: body.start_date ?? undefined,
      to: body.end_date ?? undefined,
      past: body.include_past,
      future: body.include_future,
    };
    const { selection } = await selectInstances(tx, {
      reach,
      tasks,
      upstream: body.include_upstream,
      downstream: body.include_downstream,
    });
    const result = await clearTasks(tx, {
      runs: selection,
      // Airflow's defaults make only_failed true: only_running, which must be asked for, wins.
      only: body.only_running ? "running" : body.only_failed ? "failed" : "any",
      resetRuns: body.reset_dag_runs,
      latestVersion: body.run_on_latest_version ?? false,
      refuseRunning: body.prevent_running_task,
      note: body.note,
      dryRun: body.dry_run,
    });
    if (result.kind === "running")
      throw conflict(`Task "${result.instance.taskId}" is running and prevent_running_task is set`);
    const rows = await readInstances(tx, result.affected);
    const dagRunIds = [...new Set(result.affected.map((key) => key.dagRunId))];
    if (body.dry_run || rows.length === 0) return { result: { dagRunIds: [], rows } };
    const details = {
      instances: rows.length,
      task_ids: tasks?.map((task) => task.taskId).slice(0, 100) ?? null,
    };
    const deed = { action: "clear_task_instances", dagId, runId: body.dag_run_id ?? undefined, details };
    return { result: { dagRunIds, rows }, deed };
  });
  if (outcome.dagRunIds.length > 0) options.notify({ kind: "run_edited", dagRunIds: outcome.dagRunIds });
  return showAllInstances(outcome.rows);
}

function distinct(rows: readonly TaskInstanceRow[]): TaskInstanceRow[] {
  return [...new Map(rows.map((row) => [`${row.dag_run_id}/${row.map_index}/${row.task_id}`, row])).values()];
}

/** What can be done to a run: patch, cancel, clear, delete. */

import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { clearTasks } from "../../store/edit/clear-tasks.ts";
import { cancelRun, deleteRun, markRun } from "../../store/edit/end-run.ts";
import { setRunNote } from "../../store/edit/notes.ts";
import { findDagRunById } from "../../store/list/dag-runs.ts";
import { readInstances } from "../../store/list/task-instances.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import { dagRunDocument, instanceDocument, showDagRun, showInstance } from "../server/documents.ts";
import { many, note } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, invalid } from "../server/problem.ts";
import { requireRun, runParams } from "./dag-runs.ts";

const patchBody = z.strictObject({
  state: z.enum(["queued", "success", "failed"]).nullish(),
  note: note.optional(),
});
const patchQuery = z.strictObject({ update_mask: many(z.enum(["state", "note"])).optional() });
const clearBody = z.strictObject({
  dry_run: z.boolean().default(true),
  only_failed: z.boolean().default(false),
  only_new: z.boolean().default(false),
  run_on_latest_version: z.boolean().nullish(),
  note: note.optional(),
});
const clearAnswer = z.union([
  dagRunDocument,
  z.object({ task_instances: z.array(instanceDocument), total_entries: z.number() }),
]);

export const dagRunEdits: Resource = (app, options) => {
  app.patch(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id",
    {
      schema: {
        params: runParams,
        querystring: patchQuery,
        body: patchBody,
        response: { 200: dagRunDocument },
        tags: ["DagRun"],
      },
    },
    async (request) => {
      const masked = (field: "state" | "note") => request.query.update_mask?.includes(field) ?? true;
      const state = masked("state") ? (request.body.state ?? undefined) : undefined;
      const newNote = masked("note") ? request.body.note : undefined;
      if (state === undefined && newNote === undefined)
        throw invalid(["body"], "Give a state or a note to set");
      return editRun(options, request, { state, note: newNote });
    },
  );

  app.post(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/cancel",
    { schema: { params: runParams, response: { 200: dagRunDocument }, tags: ["DagRun"] } },
    async (request) => {
      const id = await change(options, request, async (tx) => {
        const run = await requireRun(tx, request.params);
        const { changed } = await cancelRun(tx, run.id, `cancelled by ${request.principal?.name}`);
        if (!changed)
          throw conflict(`Run "${run.run_id}" of DAG "${run.dag_id}" is already over (${run.state})`);
        return { result: run.id, deed: { action: "cancel_dag_run", dagId: run.dag_id, runId: run.run_id } };
      });
      options.notify({ kind: "run_edited", dagRunIds: [id] });
      return showDagRun((await findDagRunById(options.database, id))!);
    },
  );

  app.delete(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id",
    { schema: { params: runParams, response: { 204: z.null() }, tags: ["DagRun"] } },
    async (request, reply) => {
      const id = await change(options, request, async (tx) => {
        const run = await requireRun(tx, request.params);
        const outcome = await deleteRun(tx, run.id);
        if (outcome === "active")
          throw conflict(`Run "${run.run_id}" of DAG "${run.dag_id}" is running: cancel it first`);
        return { result: run.id, deed: { action: "delete_dag_run", dagId: run.dag_id, runId: run.run_id } };
      });
      options.notify({ kind: "run_deleted", dagRunIds: [id] });
      return reply.code(204).send(null);
    },
  );

  app.post(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/clear",
    { schema: { params: runParams, body: clearBody, response: { 200: clearAnswer }, tags: ["DagRun"] } },
    async (request) => clearRun(options, request, request.params, request.body),
  );
};

async function editRun(
  options: ApiOptions,
  request: FastifyRequest<{ Params: z.output<typeof runParams> }>,
  edit: { state: "queued" | "success" | "failed" | undefined; note: string | null | undefined },
) {
  const id = await change(options, request, async (tx) => {
    const run = await requireRun(tx, request.params);
    if (edit.state !== undefined) await markRun(tx, run.id, edit.state);
    if (edit.note !== undefined) await setRunNote(tx, run.id, edit.note);
    const details = {
      ...(edit.state === undefined ? {} : { state: edit.state }),
      note: edit.note !== undefined,
    };
    return {
      result: run.id,
      deed: { action: "patch_dag_run", dagId: run.dag_id, runId: run.run_id, details },
    };
  });
  if (edit.state !== undefined) options.notify({ kind: "run_edited", dagRunIds: [id] });
  return showDagRun((await findDagRunById(options.database, id))!);
}

/** A dry run answers the instances it would clear; the real one answers the run. */
async function clearRun(
  options: ApiOptions,
  request: FastifyRequest,
  params: z.output<typeof runParams>,
  body: z.output<typeof clearBody>,
) {
  if (body.only_failed && body.only_new)
    throw invalid(["body", "only_new"], "only_failed and only_new exclude each other");
  type Answer = { dryRun: z.output<typeof instanceDocument>[] } | { id: number };
  const answer = await change<Answer>(options, request, async (tx) => {
    const run = await requireRun(tx, params);
    const result = await clearTasks(tx, {
      runs: [{ dagRunId: run.id, tasks: null }],
      only: body.only_failed ? "failed" : body.only_new ? "new" : "any",
      resetRuns: true,
      latestVersion: (body.run_on_latest_version ?? false) || body.only_new,
      refuseRunning: false,
      dryRun: body.dry_run,
    });
    const affected = result.kind === "cleared" ? result.affected : [];
    if (body.dry_run) {
      const rows = await readInstances(tx, affected);
      return { result: { dryRun: rows.map(showInstance) } };
    }
    if (body.note !== undefined) await setRunNote(tx, run.id, body.note);
    const details = { instances: affected.length };
    return {
      result: { id: run.id },
      deed: { action: "clear_dag_run", dagId: run.dag_id, runId: run.run_id, details },
    };
  });
  if ("dryRun" in answer) return { task_instances: answer.dryRun, total_entries: answer.dryRun.length };
  options.notify({ kind: "run_edited", dagRunIds: [answer.id] });
  return showDagRun((await findDagRunById(options.database, answer.id))!);
}

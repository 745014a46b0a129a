/** `/dags/{dag_id}/dagRuns`: list, read, create. Changes to a run are in `dag-run-edits.ts`. */

import type { Json } from "@tradewind/sdk/manifest";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import {
  DAG_RUN_ORDER,
  type DagRunFilter,
  type DagRunRow,
  findDagRun,
  findDagRunById,
  listDagRuns,
} from "../../store/list/dag-runs.ts";
import { type CreateRunInput, createRun } from "../../store/run/run-create.ts";
import { showGroups } from "../../store/task/run-groups.ts";
import { readRunProgress } from "../../store/why/run-progress.ts";
import { noDag, requireDag, requireDagExists } from "../dag/dags.ts";
import { ParamsCheck } from "../dag/params-check.ts";
import { principalOf } from "../server/auth.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import {
  type DagRunDocument,
  dagRunDocument,
  dagRunList,
  showDagRun,
  showDagRuns,
} from "../server/documents.ts";
import {
  absent,
  cursorPageOf,
  cursorQuery,
  id,
  instant,
  instantRange,
  instantsOf,
  int,
  jsonValue,
  many,
  namedList,
  newId,
  note,
  numberRange,
  orderBy,
  RUN_STATES,
  rangesOf,
  text,
  unused,
} from "../server/fields.ts";
import { create } from "../server/idempotent.ts";
import { conflict, invalid, notFound } from "../server/problem.ts";
import { heldRunReasons } from "../why/why-held-run.ts";
import { kindsOf, RUN_KINDS, RUN_TYPES } from "./run-types.ts";

const ranges = {
  ...instantRange("run_after"),
  ...instantRange("logical_date"),
  ...instantRange("start_date"),
  ...instantRange("end_date"),
  ...numberRange("duration"),
};

const listQuery = z.strictObject({
  ...cursorQuery,
  ...ranges,
  ...instantRange("updated_at"),
  /** The logical date, or `run_after` for a run without one. */
  ...instantRange("run_date"),
  state: many(z.enum(RUN_STATES)).optional(),
  run_type: many(z.enum(RUN_TYPES)).optional(),
  run_kind: many(z.enum(RUN_KINDS)).optional(),
  dag_version: many(int(0)).optional(),
  bundle_version: text.optional(),
  conf_contains: text.optional(),
  run_id_pattern: text.optional(),
  run_id_prefix_pattern: text.optional(),
  triggering_user_name_pattern: text.optional(),
  triggering_user_name_prefix_pattern: text.optional(),
  dag_id_pattern: text.optional(),
  dag_id_prefix_pattern: text.optional(),
  partition_key_pattern: text.optional(),
  partition_key_prefix_pattern: text.optional(),
  partition_date_gte: absent("partition dates"),
  partition_date_lte: absent("partition dates"),
  consuming_asset_pattern: text.optional(),
  /** Both together: only runs started by tasks of this run. */
  parent_dag_id: id.optional(),
  parent_dag_run_id: id.optional(),
  order_by: orderBy(DAG_RUN_ORDER, "id"),
});

const batchBody = z.strictObject({
  ...nullable(ranges),
  dag_ids: z.array(id).max(1000).nullish(),
  states: z.array(z.enum(RUN_STATES).nullable()).max(100).nullish(),
  conf_contains: text.nullish(),
  order_by: z.string().nullish(),
  page_offset: int(0).default(0),
  page_limit: int(0)
    .default(100)
    .transform((value) => Math.min(value, 1000)),
});

export const createBody = z.strictObject({
  dag_run_id: newId.nullish(),
  logical_date: instant.nullish(),
  data_interval_start: instant.nullish(),
  data_interval_end: instant.nullish(),
  run_after: instant.nullish(),
  conf: z.record(z.string(), jsonValue).nullish(),
  note: note.nullish(),
  partition_key: unused,
});

const dagParams = z.object({ dag_id: id });
export const runParams = z.object({ dag_id: id, dag_run_id: id });

export const dagRuns: Resource = (app, options) => {
  const { database } = options;
  const paramsCheck = new ParamsCheck();

  app.get(
    "/api/v2/dags/:dag_id/dagRuns",
    {
      schema: { params: dagParams, querystring: listQuery, response: { 200: dagRunList }, tags: ["DagRun"] },
    },
    async ({ params, query }) => {
      if (params.dag_id !== "~") await requireDagExists(database, params.dag_id);
      const { parent_dag_id: dag_id, parent_dag_run_id: dag_run_id } = query;
      if ((dag_id === undefined) !== (dag_run_id === undefined))
        throw invalid(
          ["query", "parent_dag_run_id"],
          "parent_dag_id and parent_dag_run_id go together: give both",
        );
      if (dag_id !== undefined && dag_run_id !== undefined)
        await requireRun(database, { dag_id, dag_run_id });
      return showDagRuns(await listDagRuns(database, filterOf(params.dag_id, query), cursorPageOf(query)));
    },
  );

  app.post(
    "/api/v2/dags/:dag_id/dagRuns/list",
    {
      schema: {
        params: z.object({ dag_id: z.literal("~") }),
        body: batchBody,
        response: { 200: dagRunList },
        tags: ["DagRun"],
      },
    },
    async ({ body }) => {
      const order = orderBy(DAG_RUN_ORDER, "id").safeParse(body.order_by ?? undefined);
      if (!order.success) throw invalid(["body", "order_by"], order.error.issues[0]!.message);
      const page = { limit: body.page_limit, offset: body.page_offset, orderBy: order.data };
      return showDagRuns(await listDagRuns(database, batchFilter(body), page));
    },
  );

  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id",
    { schema: { params: runParams, response: { 200: dagRunDocument }, tags: ["DagRun"] } },
    async ({ params }) => {
      const [run, dag] = await Promise.all([
        requireRun(database, params),
        requireDag(database, params.dag_id),
      ]);
      const [groups, heldBy, progress] = await Promise.all([
        showGroups(database, run.id),
        heldRunReasons(database, run, dag),
        readRunProgress(database, run.id),
      ]);
      return showDagRun(run, { groups, heldBy, progress });
    },
  );

  app.post(
    "/api/v2/dags/:dag_id/dagRuns",
    {
      schema: {
        params: z.object({ dag_id: id }),
        body: createBody,
        response: { 200: dagRunDocument },
        tags: ["DagRun"],
      },
    },
    (request, reply) =>
      triggerRun(
        options,
        { request, reply },
        { dagId: request.params.dag_id, body: request.body, paramsCheck },
      ),
  );
};

export async function triggerRun(
  options: ApiOptions,
  call: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  asked: { dagId: string; body: z.output<typeof createBody>; paramsCheck: ParamsCheck },
): Promise<DagRunDocument> {
  const { dagId, paramsCheck } = asked;
  const user = principalOf(call.request).name;
  let dagRunId: number | undefined;
  const { body } = await create(options, call, async (tx) => {
    const dag = await requireDag(tx, dagId);
    const input = runInput(dagId, asked.body, user);
    if (dag.version_id !== null) {
      paramsCheck.check({ id: dag.version_id, schema: dag.manifest?.paramsSchema ?? null }, input.conf);
    }
    dagRunId = await createdRun(tx, input);
    const row = (await findDagRunById(tx, dagRunId))!;
    return {
      status: 200,
      body: showDagRun(row),
      deed: { action: "trigger_dag_run", dagId, runId: row.run_id },
    };
  });
  if (dagRunId !== undefined) options.notify({ kind: "run_created", dagRunIds: [dagRunId] });
  return body;
}

export async function requireRun(
  connection: Connection,
  { dag_id, dag_run_id }: z.output<typeof runParams>,
): Promise<DagRunRow> {
  const row = await findDagRun(connection, dag_id, dag_run_id);
  if (row === undefined) throw notFound(`DAG "${dag_id}" has no run "${dag_run_id}"`);
  return row;
}

async function createdRun(tx: Connection, input: CreateRunInput): Promise<number> {
  const result = await createRun(tx, input);
  switch (result.kind) {
    case "created":
      return result.dagRunId;
    case "unknown_dag":
      throw noDag(input.dagId);
    case "stale_dag":
      throw conflict(
        `DAG "${input.dagId}" is not loaded: no file exports it, or its file fails to load (see /importErrors)`,
      );
    case "conflict":
      throw conflict(
        result.on === "run_id"
          ? `DAG "${input.dagId}" already has a run "${result.existingRunId}"`
          : `DAG "${input.dagId}" already has a run for this logical date: "${result.existingRunId}"`,
      );
  }
}

function runInput(dagId: string, body: z.output<typeof createBody>, user: string): CreateRunInput {
  const { data_interval_end: end, data_interval_start: start } = body;
  if ((start == null) !== (end == null)) {
    const missing = start == null ? "data_interval_start" : "data_interval_end";
    throw invalid(
      ["body", missing],
      "data_interval_start and data_interval_end go together: give both or neither",
    );
  }
  if (start != null && end != null && start > end) {
    throw invalid(["body", "data_interval_end"], "data_interval_end is before data_interval_start");
  }
  return {
    conf: (body.conf ?? {}) as { [key: string]: Json },
    dagId,
    interval: start != null && end != null ? { end, start } : null,
    logicalDate: body.logical_date ?? null,
    note: body.note ?? null,
    runAfter: body.run_after ?? null,
    runId: body.dag_run_id ?? null,
    triggeredBy: "rest_api",
    triggeringUser: user,
  };
}

function filterOf(dagId: string, query: z.output<typeof listQuery>): DagRunFilter {
  return {
    ...rangesOf(query),
    bundleHash: query.bundle_version,
    confContains: query.conf_contains,
    dagIdPattern: query.dag_id_pattern,
    dagIdPrefix: query.dag_id_prefix_pattern,
    dagIds: namedList(dagId),
    assetPattern: query.consuming_asset_pattern,
    ...(query.parent_dag_id &&
      query.parent_dag_run_id && {
        parent: { dagId: query.parent_dag_id, runId: query.parent_dag_run_id },
      }),
    nothing: query.partition_date_gte || query.partition_date_lte,
    partitionPattern: query.partition_key_pattern,
    partitionPrefix: query.partition_key_prefix_pattern,
    runIdPattern: query.run_id_pattern,
    runIdPrefix: query.run_id_prefix_pattern,
    runDate: instantsOf(query, "run_date"),
    runKinds: query.run_kind,
    runTypes: kindsOf(query.run_type),
    states: query.state,
    updatedAt: instantsOf(query, "updated_at"),
    userPattern: query.triggering_user_name_pattern,
    userPrefix: query.triggering_user_name_prefix_pattern,
    versions: query.dag_version,
  };
}

function batchFilter(body: z.output<typeof batchBody>): DagRunFilter {
  return {
    ...rangesOf(body),
    confContains: body.conf_contains ?? undefined,
    dagIds: body.dag_ids ?? undefined,
    states: body.states?.filter((state) => state !== null),
  };
}

/** The filters of a query in the form of a body: null means not given. */
function nullable<S extends Record<string, z.ZodType>>(shape: S): { [K in keyof S]: z.ZodNullable<S[K]> } {
  return Object.fromEntries(Object.entries(shape).map(([key, schema]) => [key, schema.nullable()])) as {
    [K in keyof S]: z.ZodNullable<S[K]>;
  };
}

/** Task instances and their tries: list and read. Changes are in `task-instance-edits.ts`. */
import { z } from "zod";
import { inTopologicalOrder } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import {
  countMapped,
  findTaskInstance,
  type InstanceAddress,
  listTaskInstances,
  listTries,
  TASK_INSTANCE_ORDER,
  type TaskInstanceFilter,
  type TaskInstanceRow,
} from "../../store/list/task-instances.ts";
import { requireDagExists } from "../dag/dags.ts";
import { requireTask } from "../dag/tasks.ts";
import { requireRun } from "../run/dag-runs.ts";
import type { Resource } from "../server/context.ts";
import {
  instanceDocument,
  instanceList,
  showInstance,
  showInstances,
  showTry,
  tryDocument,
} from "../server/documents.ts";
import {
  cursorPageOf,
  cursorQuery,
  id,
  instant,
  instantRange,
  instantsOf,
  int,
  many,
  mapIndex,
  namedList,
  numberRange,
  orderBy,
  rangesOf,
  TASK_STATES,
  text,
} from "../server/fields.ts";
import { invalid, notFound, Problem } from "../server/problem.ts";

/** Airflow writes the initial state as null; in a query it is one of these words. */
const state = z
  .enum([...TASK_STATES, "pending", "none", "no_status"])
  .transform((value) => (value === "none" || value === "no_status" ? "pending" : value));

const listShape = {
  ...cursorQuery,
  ...instantRange("updated_at"),
  ...instantRange("run_after"),
  ...instantRange("logical_date"),
  ...instantRange("start_date"),
  ...instantRange("end_date"),
  ...numberRange("duration"),
  task_id: id.optional(),
  task_display_name_pattern: text.optional(),
  task_display_name_prefix_pattern: text.optional(),
  task_group_id: id.optional(),
  dag_id_pattern: text.optional(),
  dag_id_prefix_pattern: text.optional(),
  run_id_pattern: text.optional(),
  run_id_prefix_pattern: text.optional(),
  state: many(state).optional(),
  pool: many(id).optional(),
  pool_name_pattern: text.optional(),
  pool_name_prefix_pattern: text.optional(),
  queue: many(id).optional(),
  queue_name_pattern: text.optional(),
  queue_name_prefix_pattern: text.optional(),
  executor: many(id).optional(),
  operator: many(id).optional(),
  operator_name_pattern: text.optional(),
  operator_name_prefix_pattern: text.optional(),
  version_number: many(int(0)).optional(),
  try_number: many(int(0)).optional(),
  map_index: many(mapIndex).optional(),
  rendered_map_index_pattern: text.optional(),
  rendered_map_index_prefix_pattern: text.optional(),
};
/** By run, which has an index; Airflow's default, the map index, would sort the whole history for one page. */
const listQuery = z.strictObject({ ...listShape, order_by: orderBy(TASK_INSTANCE_ORDER, "id") });
const mappedQuery = z.strictObject({ ...listShape, order_by: orderBy(TASK_INSTANCE_ORDER, "map_index") });

const bound = instant.nullish();
const batchBody = z.strictObject({
  dag_ids: z.array(id).max(1000).nullish(),
  dag_run_ids: z.array(id).max(1000).nullish(),
  task_ids: z.array(id).max(1000).nullish(),
  state: z
    .array(state.nullable().transform((value) => value ?? "pending"))
    .max(100)
    .nullish(),
  pool: z.array(id).max(1000).nullish(),
  queue: z.array(id).max(1000).nullish(),
  executor: z.array(id).max(1000).nullish(),
  run_after_gte: bound,
  run_after_gt: bound,
  run_after_lte: bound,
  run_after_lt: bound,
  logical_date_gte: bound,
  logical_date_gt: bound,
  logical_date_lte: bound,
  logical_date_lt: bound,
  start_date_gte: bound,
  start_date_gt: bound,
  start_date_lte: bound,
  start_date_lt: bound,
  end_date_gte: bound,
  end_date_gt: bound,
  end_date_lte: bound,
  end_date_lt: bound,
  duration_gte: z.number().nullish(),
  duration_gt: z.number().nullish(),
  duration_lte: z.number().nullish(),
  duration_lt: z.number().nullish(),
  page_offset: int(0).default(0),
  page_limit: int(0)
    .default(100)
    .transform((value) => Math.min(value, 1000)),
  order_by: z.string().nullish(),
});

const listParams = z.object({ dag_id: id, dag_run_id: id });
export const taskParams = z.object({ dag_id: id, dag_run_id: id, task_id: id });
export const mappedParams = taskParams.extend({ map_index: mapIndex });
export const mapQuery = z.strictObject({ map_index: mapIndex.default(-1) });
const tryList = z.object({ task_instances: z.array(tryDocument), total_entries: z.number() });
const tryNumber = { task_try_number: int(0) };

const BASE = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances";

export const taskInstances: Resource = (app, { database }) => {
  const tags = ["Task Instance"];

  app.get(
    BASE,
    { schema: { params: listParams, querystring: listQuery, response: { 200: instanceList }, tags } },
    async ({ params, query }) => {
      const run = await requireParents(database, params);
      const page = { ...cursorPageOf(query), taskOrder: await taskOrder(database, run, query.order_by) };
      return showInstances(await listTaskInstances(database, filterOf(params, query), page));
    },
  );

  app.post(
    `${BASE}/list`,
    { schema: { params: listParams, body: batchBody, response: { 200: instanceList }, tags } },
    async ({ body, params }) => {
      const run = await requireParents(database, params);
      const order = orderBy(TASK_INSTANCE_ORDER, "id").safeParse(body.order_by ?? undefined);
      if (!order.success) throw invalid(["body", "order_by"], order.error.issues[0]!.message);
      const page = {
        limit: body.page_limit,
        offset: body.page_offset,
        orderBy: order.data,
        taskOrder: await taskOrder(database, run, order.data),
      };
      return showInstances(await listTaskInstances(database, batchFilter(params, body), page));
    },
  );

  app.get(
    `${BASE}/:task_id`,
    { schema: { params: taskParams, response: { 200: instanceDocument }, tags } },
    async ({ params }) => showInstance(await requireInstance(database, addressOf(params, -1))),
  );

  app.get(
    `${BASE}/:task_id/:map_index`,
    { schema: { params: mappedParams, response: { 200: instanceDocument }, tags } },
    async ({ params }) => showInstance(await requireInstance(database, addressOf(params, params.map_index))),
  );

  app.get(
    `${BASE}/:task_id/listMapped`,
    { schema: { params: taskParams, querystring: mappedQuery, response: { 200: instanceList }, tags } },
    async ({ params, query }) => {
      const filter = { ...filterOf(params, query), taskIds: [params.task_id] };
      const listed = await listTaskInstances(database, filter, cursorPageOf(query));
      if (listed.rows.length === 0) await requireTask(database, params);
      return showInstances(listed);
    },
  );

  const tries = async (address: InstanceAddress) => {
    await requireInstance(database, address);
    const rows = await listTries(database, address);
    return { task_instances: rows.map(showTry), total_entries: rows.length };
  };
  const oneTry = async (address: InstanceAddress, number: number) => {
    await requireInstance(database, address);
    const row = (await listTries(database, address)).find((each) => each.try_number === number);
    if (row === undefined) throw notFound(`${describe(address)} has no try ${number}`);
    return showTry(row);
  };

  app.get(
    `${BASE}/:task_id/tries`,
    { schema: { params: taskParams, querystring: mapQuery, response: { 200: tryList }, tags } },
    ({ params, query }) => tries(addressOf(params, query.map_index)),
  );
  app.get(
    `${BASE}/:task_id/:map_index/tries`,
    { schema: { params: mappedParams, response: { 200: tryList }, tags } },
    ({ params }) => tries(addressOf(params, params.map_index)),
  );
  app.get(
    `${BASE}/:task_id/tries/:task_try_number`,
    {
      schema: {
        params: taskParams.extend(tryNumber),
        querystring: mapQuery,
        response: { 200: tryDocument },
        tags,
      },
    },
    ({ params, query }) => oneTry(addressOf(params, query.map_index), params.task_try_number),
  );
  app.get(
    `${BASE}/:task_id/:map_index/tries/:task_try_number`,
    { schema: { params: mappedParams.extend(tryNumber), response: { 200: tryDocument }, tags } },
    ({ params }) => oneTry(addressOf(params, params.map_index), params.task_try_number),
  );
};

export function addressOf(params: z.output<typeof taskParams>, index: number): InstanceAddress {
  return { dagId: params.dag_id, runId: params.dag_run_id, taskId: params.task_id, mapIndex: index };
}

export function describe({ dagId, mapIndex: index, runId, taskId }: InstanceAddress): string {
  return `Task "${taskId}${index < 0 ? "" : `[${index}]`}" of run "${runId}" of DAG "${dagId}"`;
}

export async function requireInstance(
  connection: Connection,
  address: InstanceAddress,
): Promise<TaskInstanceRow> {
  const row = await findTaskInstance(connection, address);
  if (row !== undefined) return row;
  const mapped = address.mapIndex < 0 ? await countMapped(connection, address) : null;
  if (mapped !== null) {
    const { count, last } = mapped;
    const have = `has ${count} mapped ${count === 1 ? "instance" : "instances"}`;
    throw new Problem(
      404,
      "MAP_INDEX_REQUIRED",
      `${describe(address)} ${have}: choose one by its map index, ${last === 0 ? "0" : `0 to ${last}`}`,
    );
  }
  await requireRun(connection, { dag_id: address.dagId, dag_run_id: address.runId });
  throw notFound(`${describe(address)} does not exist, or its run has not started yet`);
}

/** An empty list would hide that the run does not exist. */
async function requireParents(
  connection: Connection,
  params: z.output<typeof listParams>,
): Promise<DagRunRow | null> {
  if (params.dag_id === "~") return null;
  if (params.dag_run_id !== "~") return requireRun(connection, params);
  await requireDagExists(connection, params.dag_id);
  return null;
}

/** null: not ordered by it. */
async function taskOrder(
  connection: Connection,
  run: DagRunRow | null,
  order: readonly string[],
): Promise<string[] | null> {
  if (!order.some((key) => /^-?topological_index$/.test(key))) return null;
  if (run === null)
    throw invalid(
      ["query", "order_by"],
      "topological_index orders the tasks of one run: give its DAG and run",
    );
  const manifest = (await readManifests(connection, [run.version_id])).get(run.version_id);
  return manifest ? inTopologicalOrder(manifest).map(({ taskId }) => taskId) : [];
}

function filterOf(
  params: z.output<typeof listParams>,
  query: z.output<typeof listQuery>,
): TaskInstanceFilter {
  return {
    ...rangesOf(query),
    dagIdPattern: query.dag_id_pattern,
    dagIdPrefix: query.dag_id_prefix_pattern,
    dagIds: namedList(params.dag_id),
    executors: query.executor,
    groupId: query.task_group_id,
    mapIndexes: query.map_index,
    mapIndexPattern: query.rendered_map_index_pattern,
    mapIndexPrefix: query.rendered_map_index_prefix_pattern,
    operatorPattern: query.operator_name_pattern,
    operatorPrefix: query.operator_name_prefix_pattern,
    operators: query.operator,
    poolPattern: query.pool_name_pattern,
    poolPrefix: query.pool_name_prefix_pattern,
    pools: query.pool,
    queuePattern: query.queue_name_pattern,
    queuePrefix: query.queue_name_prefix_pattern,
    queues: query.queue,
    runIdPattern: query.run_id_pattern,
    runIdPrefix: query.run_id_prefix_pattern,
    runIds: namedList(params.dag_run_id),
    states: query.state,
    taskIdPattern: query.task_display_name_pattern,
    taskIdPrefix: query.task_display_name_prefix_pattern,
    taskIds: query.task_id === undefined ? undefined : [query.task_id],
    tryNumbers: query.try_number,
    updatedAt: instantsOf(query, "updated_at"),
    versions: query.version_number,
  };
}

function batchFilter(
  params: z.output<typeof listParams>,
  body: z.output<typeof batchBody>,
): TaskInstanceFilter {
  return {
    ...rangesOf(body),
    dagIds: namedList(params.dag_id) ?? body.dag_ids ?? undefined,
    executors: body.executor ?? undefined,
    pools: body.pool ?? undefined,
    queues: body.queue ?? undefined,
    runIds: namedList(params.dag_run_id) ?? body.dag_run_ids ?? undefined,
    states: body.state ?? undefined,
    taskIds: body.task_ids ?? undefined,
  };
}

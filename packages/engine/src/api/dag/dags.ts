/** `/dags`: list, read, pause, delete. */
import { z } from "zod";
import { deleteDag, setPaused } from "../../store/dag/dag-settings.ts";
import type { Connection } from "../../store/database/database.ts";
import {
  countActiveRuns,
  DAG_ORDER,
  type DagFilter,
  type DagRow,
  dagExists,
  dagStats,
  findDag,
  groupRetries,
  listDags,
  listTags,
} from "../../store/list/dags.ts";
import type { ApiOptions, Resource } from "../server/context.ts";
import {
  bundleName,
  flag,
  id,
  instantRange,
  instantsOf,
  isOtherBundle,
  many,
  orderBy,
  pageQuery,
  RUN_STATES,
  text,
} from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, notFound } from "../server/problem.ts";
import { dagDetailsDocument, dagDocument, showDag, showDagDetails, showDags } from "./dag-document.ts";

const filterQuery = {
  ...pageQuery,
  dag_id_pattern: text.optional(),
  dag_id_prefix_pattern: text.optional(),
  dag_display_name_pattern: text.optional(),
  dag_display_name_prefix_pattern: text.optional(),
  tags: many(text).optional(),
  tags_match_mode: z.enum(["any", "all"]).optional(),
  owners: many(text).optional(),
  paused: flag.optional(),
  exclude_stale: flag.default(true),
  has_import_errors: flag.optional(),
  last_dag_run_state: z.enum(RUN_STATES).optional(),
  dag_run_state: many(z.enum(RUN_STATES)).optional(),
  ...instantRange("dag_run_start_date"),
  ...instantRange("dag_run_end_date"),
  bundle_name: bundleName,
  bundle_version: text.optional(),
  timetable_type: many(text)
    .optional()
    .describe(
      "Kinds of schedule (none, once, continuous, cron, interval, dates, several, timetable, trigger, signal) or Airflow's names of timetables.",
    ),
  has_asset_schedule: flag.optional(),
  asset_dependency: text.optional(),
  is_favorite: flag.optional().describe("Favourites are not supported: this filter matches none."),
  order_by: orderBy(DAG_ORDER, "dag_id"),
};
const listQuery = z.strictObject(filterQuery);
const patchQuery = z.strictObject({ update_mask: many(z.literal("is_paused")).optional() });
const patchBody = z.strictObject({ is_paused: z.boolean() });
const params = z.object({ dag_id: id });
const dagList = z.object({ dags: z.array(dagDocument), total_entries: z.number() });

export const dags: Resource = (app, options) => {
  const { database } = options;

  app.get(
    "/api/v2/dags",
    { schema: { querystring: listQuery, response: { 200: dagList }, tags: ["DAG"] } },
    async ({ query }) => {
      const { rows, total } = await listDags(database, filterOf(query), pageOf(query));
      return { dags: await showDags(database, rows), total_entries: total };
    },
  );

  app.patch(
    "/api/v2/dags",
    {
      schema: {
        querystring: z.strictObject({ ...filterQuery, update_mask: patchQuery.shape.update_mask }),
        body: patchBody,
        response: { 200: dagList },
        tags: ["DAG"],
      },
    },
    async (request) => {
      const { rows, total } = await listDags(database, filterOf(request.query), pageOf(request.query));
      const dagIds = rows.map((row) => row.dag_id);
      await pause(options, { dagIds, paused: request.body.is_paused, request });
      const changed = rows.map((row) => afterwards(row, request.body.is_paused));
      return { dags: await showDags(database, changed), total_entries: total };
    },
  );

  app.get(
    "/api/v2/dags/:dag_id",
    { schema: { params, response: { 200: dagDocument }, tags: ["DAG"] } },
    async (request) => showDag(database, await requireDag(database, request.params.dag_id)),
  );

  app.get(
    "/api/v2/dags/:dag_id/details",
    { schema: { params, response: { 200: dagDetailsDocument }, tags: ["DAG"] } },
    async (request) => {
      const row = await requireDag(database, request.params.dag_id);
      const [activeRuns, groups] = await Promise.all([
        countActiveRuns(database, row.dag_id),
        groupRetries(database, row.dag_id),
      ]);
      return showDagDetails(database, row, { activeRuns, groups });
    },
  );

  app.patch(
    "/api/v2/dags/:dag_id",
    {
      schema: {
        params,
        querystring: patchQuery,
        body: patchBody,
        response: { 200: dagDocument },
        tags: ["DAG"],
      },
    },
    async (request) => {
      await requireDagExists(database, request.params.dag_id);
      await pause(options, { dagIds: [request.params.dag_id], paused: request.body.is_paused, request });
      return showDag(database, await requireDag(database, request.params.dag_id));
    },
  );

  app.delete(
    "/api/v2/dags/:dag_id",
    { schema: { params, response: { 200: z.null() }, tags: ["DAG"] } },
    async (request) => {
      const dagId = request.params.dag_id;
      await change(options, request, async (tx) => {
        const outcome = await deleteDag(tx, dagId);
        if (outcome === "not_found") throw noDag(dagId);
        if (outcome === "active") throw conflict(`DAG "${dagId}" has unfinished runs: cancel them first`);
        return { result: undefined, deed: { action: "delete_dag", dagId } };
      });
      options.notify({ kind: "dag_changed", dagIds: [dagId] });
      return null;
    },
  );

  app.get(
    "/api/v2/dagStats",
    {
      schema: {
        querystring: z.strictObject({ dag_ids: many(id).optional() }),
        response: { 200: z.object({ dags: z.array(statDocument), total_entries: z.number() }) },
        tags: ["DAG"],
      },
    },
    async ({ query }) => {
      const stats = await dagStats(database, query.dag_ids);
      return {
        dags: stats.map((stat) => ({
          dag_id: stat.dag_id,
          dag_display_name: stat.dag_id,
          stats: RUN_STATES.map((state) => ({ state, count: stat[state] })),
        })),
        total_entries: stats.length,
      };
    },
  );

  app.get(
    "/api/v2/dagTags",
    {
      schema: {
        querystring: z.strictObject({
          ...pageQuery,
          order_by: orderBy({ name: "" }, "name"),
          tag_name_pattern: text.optional(),
          tag_name_prefix_pattern: text.optional(),
        }),
        response: { 200: z.object({ tags: z.array(z.string()), total_entries: z.number() }) },
        tags: ["DAG"],
      },
    },
    async ({ query }) => {
      const { rows, total } = await listTags(
        database,
        { pattern: query.tag_name_pattern, prefix: query.tag_name_prefix_pattern },
        pageOf(query),
      );
      return { tags: rows.map((row) => row.name), total_entries: total };
    },
  );
};

const statDocument = z.object({
  dag_id: z.string(),
  dag_display_name: z.string(),
  stats: z.array(z.object({ state: z.enum(RUN_STATES), count: z.number() })),
});

export async function requireDag(connection: Connection, dagId: string): Promise<DagRow> {
  const row = await findDag(connection, dagId);
  if (row === undefined) throw noDag(dagId);
  return row;
}

/** The row after the change: a manual decision clears the pause reason. */
function afterwards(row: DagRow, isPaused: boolean): DagRow {
  return row.is_paused === isPaused ? row : { ...row, is_paused: isPaused, pause_reason: null };
}

/** For lists below a DAG: an empty list would hide that the DAG does not exist. */
export async function requireDagExists(connection: Connection, dagId: string): Promise<void> {
  if (!(await dagExists(connection, dagId))) throw noDag(dagId);
}

export function noDag(dagId: string) {
  return notFound(`DAG "${dagId}" does not exist`);
}

export function pageOf(query: { limit: number; offset: number; order_by: readonly string[] }) {
  return { limit: query.limit, offset: query.offset, orderBy: query.order_by };
}

async function pause(
  options: ApiOptions,
  {
    dagIds,
    paused,
    request,
  }: { dagIds: readonly string[]; paused: boolean; request: Parameters<typeof change>[1] },
): Promise<void> {
  const changed = await change(options, request, async (tx) => {
    const result = await setPaused(tx, dagIds, paused);
    const action = paused ? "pause_dag" : "unpause_dag";
    const deed =
      result.length === 1
        ? { action, dagId: result[0]! }
        : { action, about: result, details: { dag_ids: result } };
    return result.length === 0 ? { result } : { result, deed };
  });
  if (changed.length > 0) options.notify({ kind: "dag_changed", dagIds: changed });
}

/** Airflow's timetable classes; clients filter by full or bare names. */
const TIMETABLES: ReadonlyMap<string, string> = new Map([
  ["NullTimetable", "none"],
  ["OnceTimetable", "once"],
  ["ContinuousTimetable", "continuous"],
  ["CronTriggerTimetable", "cron/trigger"],
  ["CronDataIntervalTimetable", "cron/interval"],
  ["DeltaTriggerTimetable", "interval/trigger"],
  ["DeltaDataIntervalTimetable", "interval/interval"],
  ["MultipleCronTriggerTimetable", "several"],
  ["EventsTimetable", "dates"],
]);

function filterOf(query: z.output<typeof listQuery>): DagFilter {
  return {
    bundleHash: query.bundle_version || undefined,
    dagIdPattern: query.dag_id_pattern ?? query.dag_display_name_pattern,
    dagIdPrefix: query.dag_id_prefix_pattern ?? query.dag_display_name_prefix_pattern,
    excludeStale: query.exclude_stale,
    hasImportErrors: query.has_import_errors,
    lastRunState: query.last_dag_run_state,
    assetPattern: query.asset_dependency,
    hasAssetSchedule: query.has_asset_schedule,
    nothing: isOtherBundle(query.bundle_name) || query.is_favorite,
    owners: query.owners,
    paused: query.paused,
    runEndedAt: instantsOf(query, "dag_run_end_date"),
    runStartedAt: instantsOf(query, "dag_run_start_date"),
    runStates: query.dag_run_state,
    scheduleKinds: query.timetable_type?.map(
      (type) => TIMETABLES.get(type.slice(type.lastIndexOf(".") + 1)) ?? type,
    ),
    tags: query.tags,
    tagsMatch: query.tags_match_mode,
  };
}

/** Task instances and their earlier tries, as the API lists them. */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import {
  COUNTED_EXACTLY,
  Conditions,
  first,
  type ListedPage,
  listPage,
  type Page,
  type Range,
} from "../page/query.ts";
import { RUN_VERSION_COLUMNS, type RunFilter, type RunVersionColumns, runConditions } from "./dag-runs.ts";
import { type CurrentWait, readCurrentWaits } from "./deferrals.ts";
import { type FailedUpstreamRow, readFailedUpstream } from "./failed-upstream.ts";
import { type MapPlace, withMapPlaces } from "./map-places.ts";
import { withOwnVersions } from "./own-versions.ts";

export interface TaskInstanceRow extends RunVersionColumns {
  readonly dag_run_id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_state: string;
  readonly logical_date: Date | null;
  readonly run_after: Date;
  readonly task_id: string;
  readonly map_index: number;
  readonly state: string;
  readonly try_number: number;
  readonly max_tries: number;
  readonly scheduled_at: Date | null;
  readonly queued_at: Date | null;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly retry_at: Date | null;
  readonly pool: string;
  readonly pool_slots: number;
  readonly limit_key: string | null;
  readonly queue: string;
  readonly priority_weight: number;
  readonly executor: string | null;
  readonly operator: string;
  /** Where its process runs or ran; null while it is queued. */
  readonly hostname: string | null;
  /** The scheduler or worker there. */
  readonly executor_job: ExecutorJob | null;
  readonly pid: number | null;
  readonly reason: string | null;
  readonly attempt: string | null;
  readonly note: string | null;
  /** The current wait of a deferred instance. */
  readonly wait: CurrentWait | null;
  readonly place: MapPlace;
  /** For an upstream_failed instance: the failed instance at the start of the chain, if known. */
  readonly failed_upstream: FailedUpstreamRow | null;
}

interface ExecutorJob {
  readonly id: number;
  readonly kind: string;
  /** Of a worker. */
  readonly name: string | null;
}

export interface TaskInstanceFilter extends RunFilter {
  readonly taskIds?: readonly string[];
  readonly taskIdPattern?: string;
  readonly taskIdPrefix?: string;
  readonly groupId?: string;
  readonly states?: readonly string[];
  readonly pools?: readonly string[];
  readonly poolPattern?: string;
  readonly poolPrefix?: string;
  readonly queues?: readonly string[];
  readonly queuePattern?: string;
  readonly queuePrefix?: string;
  readonly executors?: readonly string[];
  readonly operators?: readonly string[];
  readonly operatorPattern?: string;
  readonly operatorPrefix?: string;
  readonly versions?: readonly number[];
  readonly tryNumbers?: readonly number[];
  readonly mapIndexes?: readonly number[];
  readonly mapIndexPattern?: string;
  readonly mapIndexPrefix?: string;
  readonly startedAt?: Range<Date>;
  readonly endedAt?: Range<Date>;
  readonly durationSeconds?: Range<number>;
  readonly updatedAt?: Range<Date>;
}

/** Identifies one instance as the API does. */
export interface InstanceAddress {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
}

/** The label or the map index; null if the task is not mapped. For nested maps, the API shows a path. */
const RENDERED_MAP_INDEX = `CASE WHEN t.map_index >= 0 THEN coalesce(
  (SELECT l.label FROM map_label l
   WHERE l.dag_run_id = t.dag_run_id AND l.task_id = t.task_id AND l.map_index = t.map_index), t.map_index::text) END`;
/** The latest recorded time of the instance, or of its run if the run was queued again. */
const UPDATED_AT =
  "GREATEST(r.created_at, r.queued_at, t.scheduled_at, t.queued_at, t.started_at, t.ended_at)";
const DURATION = "EXTRACT(EPOCH FROM t.ended_at - t.started_at)";

export const TASK_INSTANCE_ORDER = {
  id: "t.dag_run_id",
  dag_id: "r.dag_id",
  dag_run_id: "r.run_id",
  run_id: "r.run_id",
  task_id: "t.task_id",
  task_display_name: "t.task_id",
  map_index: "t.map_index",
  rendered_map_index: "t.map_index",
  state: "t.state",
  try_number: "t.try_number",
  pool: "t.pool",
  queue: "t.queue",
  operator: "t.operator",
  priority_weight: "t.priority_weight",
  logical_date: "r.logical_date",
  run_after: "r.run_after",
  data_interval_start: "r.interval_start",
  data_interval_end: "r.interval_end",
  start_date: "t.started_at",
  end_date: "t.ended_at",
  queued_when: "t.queued_at",
  scheduled_when: "t.scheduled_at",
  duration: DURATION,
  updated_at: UPDATED_AT,
  /** Only within one run: `taskOrder` defines it there. */
  topological_index: "NULL::int4",
} as const;

export async function listTaskInstances(
  connection: Connection,
  filter: TaskInstanceFilter,
  { taskOrder, ...page }: Page & { readonly taskOrder?: readonly string[] | null },
): Promise<ListedPage<TaskInstanceRow>> {
  const where = conditions(filter);
  const listed = await listPage<BareRow>(connection, {
    columns: COLUMNS,
    from: FROM,
    where,
    order: taskOrder
      ? { ...TASK_INSTANCE_ORDER, topological_index: placeIn(taskOrder, where) }
      : TASK_INSTANCE_ORDER,
    tiebreak: "t.dag_run_id, t.task_id, t.map_index",
    page,
    // The instances of one run are counted by its index alone, and an exact total shows its progress.
    countUpTo: filter.dagIds?.length === 1 && filter.runIds?.length === 1 ? undefined : COUNTED_EXACTLY,
  });
  return { ...listed, rows: await complete(connection, listed.rows) };
}

/** SQL: the position of a task in an order. Tasks of earlier versions of the DAG come last. */
function placeIn(taskIds: readonly string[], where: Conditions): string {
  const places = where.bind(JSON.stringify(Object.fromEntries(taskIds.map((id, index) => [id, index]))));
  // PostgreSQL rejects an unused parameter, and the count has no order.
  where.raw(`${places}::jsonb IS NOT NULL`);
  return `coalesce((${places}::jsonb -> t.task_id)::int4, 2147483647)`;
}

export async function findTaskInstance(
  connection: Connection,
  address: InstanceAddress,
): Promise<TaskInstanceRow | undefined> {
  const row = await first<BareRow>(connection, { columns: COLUMNS, from: FROM, where: addressed(address) });
  return row === undefined ? undefined : (await complete(connection, [row]))[0];
}

/** Counts the mapped instances of the task at this address; null: not mapped, or not expanded. */
export async function countMapped(
  connection: Connection,
  { dagId, runId, taskId }: InstanceAddress,
): Promise<{ readonly count: number; readonly last: number } | null> {
  const where = new Conditions()
    .equals("r.dag_id", dagId)
    .equals("r.run_id", runId)
    .equals("t.task_id", taskId);
  const row = await first<{ count: number; last: number | null }>(connection, {
    columns: "count(*)::int8 AS count, max(t.map_index) AS last",
    from: "task_instance t JOIN dag_run r ON r.id = t.dag_run_id",
    where: where.raw("t.map_index >= 0"),
  });
  return row == null || row.last === null ? null : { count: row.count, last: row.last };
}

/** The instances affected by an edit, in the order of run, task and map index. */
export async function readInstances(
  connection: Connection,
  keys: readonly { dagRunId: number; taskId: string; mapIndex: number }[],
): Promise<TaskInstanceRow[]> {
  const rows = await connection.rows<BareRow>(
    adhoc(`SELECT ${COLUMNS} FROM unnest($1::int8[], $2::text[], $3::int4[]) AS k (dag_run_id, task_id, map_index)
        JOIN task_instance t USING (dag_run_id, task_id, map_index) JOIN dag_run r ON r.id = t.dag_run_id
        JOIN dag_version v ON v.id = r.version_id ORDER BY t.dag_run_id, t.task_id, t.map_index`),
    [keys.map((key) => key.dagRunId), keys.map((key) => key.taskId), keys.map((key) => key.mapIndex)],
  );
  return complete(connection, rows);
}

type BareRow = Omit<TaskInstanceRow, "failed_upstream" | "wait" | "place">;

/** Separate queries for the few rows of a page that need them, so that they do not slow the selection of the page. */
async function complete(connection: Connection, rows: readonly BareRow[]): Promise<TaskInstanceRow[]> {
  const deferred = rows.filter((row) => row.state === "deferred");
  const waits = await readCurrentWaits(connection, deferred);
  const byRow = new Map(deferred.map((row, index) => [row, waits[index] ?? null]));
  const waiting = rows.map((row) => ({ ...row, wait: byRow.get(row) ?? null }));
  const placed = await withMapPlaces(connection, waiting);
  const implied = placed.filter((row) => row.state === "upstream_failed");
  const failures = await readFailedUpstream(connection, implied);
  const failureOf = new Map(implied.map((row, index) => [row, failures[index] ?? null]));
  const own = await withOwnVersions(connection, placed);
  return own.map((row, index) => ({ ...row, failed_upstream: failureOf.get(placed[index]!) ?? null }));
}

/** One try; columns that a try does not have are those of the instance. */
export type TryRow = BareRow;

/**
 * All tries, the current one last. Several attempts with one try number (all but one were lost) are one try: the instance
 * itself if it represents that try (it has an attempt, or has ended), else the last recorded attempt.
 */
export async function listTries(connection: Connection, address: InstanceAddress): Promise<TryRow[]> {
  const where = addressed(address);
  const text = `SELECT * FROM (
      SELECT DISTINCT ON (x.try_number) ${COLUMNS.replace(OWN_COLUMNS, HISTORY_COLUMNS)}
      FROM ${FROM} JOIN task_attempt x ON x.dag_run_id = t.dag_run_id AND x.task_id = t.task_id AND x.map_index = t.map_index
      ${where} AND (x.try_number <> t.try_number OR NOT ${STANDS_FOR_TRY})
      ORDER BY x.try_number, x.ended_at DESC NULLS LAST
    ) past
    UNION ALL (SELECT ${COLUMNS} FROM ${FROM} ${where} AND t.try_number > 0 AND ${STANDS_FOR_TRY})
    ORDER BY try_number`;
  return withOwnVersions(connection, await connection.rows<TryRow>(adhoc(text), where.values));
}

const STANDS_FOR_TRY =
  "(t.attempt IS NOT NULL OR t.state IN ('success', 'failed', 'skipped', 'upstream_failed', 'removed'))";
const executorJob = (row: string) =>
  `(SELECT json_build_object('id', j.id, 'kind', j.kind, 'name', j.name) FROM job j WHERE j.id = ${row}.executor_job)`;
/** A queued instance has no process: its columns name the scheduler that has queued it. */
const OWN_COLUMNS = `t.state, t.try_number, t.max_tries, t.scheduled_at, t.queued_at, t.started_at, t.ended_at, t.pid, t.reason, t.attempt,
  CASE WHEN t.state <> 'queued' THEN t.hostname END AS hostname,
  CASE WHEN t.state <> 'queued' THEN ${executorJob("t")} END AS executor_job`;
const HISTORY_COLUMNS = `x.state, x.try_number, t.max_tries, x.scheduled_at, x.queued_at, x.started_at, x.ended_at, x.pid, x.reason, x.attempt,
  x.hostname, ${executorJob("x")} AS executor_job`;
const COLUMNS = `t.dag_run_id, r.dag_id, r.run_id, r.state AS run_state, r.logical_date, r.run_after, t.task_id, t.map_index,
  ${OWN_COLUMNS}, t.retry_at, t.pool, t.pool_slots, t.limit_key, t.queue, t.priority_weight, t.executor, t.operator,
  t.note, ${RUN_VERSION_COLUMNS}`;

const FROM =
  "task_instance t JOIN dag_run r ON r.id = t.dag_run_id JOIN dag_version v ON v.id = r.version_id";

function addressed({ dagId, runId, taskId, mapIndex }: InstanceAddress): Conditions {
  return new Conditions()
    .equals("r.dag_id", dagId)
    .equals("r.run_id", runId)
    .equals("t.task_id", taskId)
    .equals("t.map_index", mapIndex);
}

function conditions(filter: TaskInstanceFilter): Conditions {
  const where = runConditions(filter)
    .oneOf("t.task_id", filter.taskIds)
    .matches("t.task_id", filter.taskIdPattern)
    .startsWith("t.task_id", filter.taskIdPrefix)
    .oneOf("t.state", filter.states)
    .oneOf("t.pool", filter.pools)
    .matches("t.pool", filter.poolPattern)
    .startsWith("t.pool", filter.poolPrefix)
    .oneOf("t.queue", filter.queues)
    .matches("t.queue", filter.queuePattern)
    .startsWith("t.queue", filter.queuePrefix)
    .oneOf("t.executor", filter.executors)
    .oneOf("t.operator", filter.operators)
    .matches("t.operator", filter.operatorPattern)
    .startsWith("t.operator", filter.operatorPrefix)
    .oneOf("v.number", filter.versions)
    .oneOf("t.try_number", filter.tryNumbers)
    .oneOf("t.map_index", filter.mapIndexes)
    .matches(RENDERED_MAP_INDEX, filter.mapIndexPattern)
    .startsWith(RENDERED_MAP_INDEX, filter.mapIndexPrefix)
    .between("t.started_at", filter.startedAt)
    .between("t.ended_at", filter.endedAt)
    .between(DURATION, filter.durationSeconds)
    .between(UPDATED_AT, filter.updatedAt);
  if (filter.groupId) where.raw(`starts_with(t.task_id, ${where.bind(`${filter.groupId}.`)})`);
  return where;
}

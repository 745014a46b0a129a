/** Runs as the API lists them. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { adhoc, statement } from "../database/statement.ts";
import {
  COUNTED_EXACTLY,
  Conditions,
  first,
  type ListedPage,
  listPage,
  type Page,
  type Range,
} from "../page/query.ts";
import { type MapPlace, readMapPlaces } from "./map-places.ts";

export interface DagRunRow extends RunVersionColumns {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_type: string;
  readonly state: "queued" | "running" | "success" | "failed";
  readonly logical_date: Date | null;
  readonly interval_start: Date | null;
  readonly interval_end: Date | null;
  readonly run_after: Date;
  readonly conf: Json;
  readonly triggered_by: string;
  readonly triggering_user: string | null;
  readonly note: string | null;
  readonly end_reason: string | null;
  readonly try_number: number;
  /** The maximum number of tries; null until one has failed. */
  readonly max_tries: number | null;
  /** When its next try starts. */
  readonly retry_at: Date | null;
  readonly partition_key: string | null;
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly owner_job: number | null;
  /** The task that created it; null: none, or its run is deleted. */
  readonly parent: RunParent | null;
}

/** The version `v` of a run. */
export interface RunVersionColumns {
  readonly version_id: number;
  readonly version_number: number;
  readonly version_created_at: Date;
  readonly bundle_hash: string;
}

export const RUN_VERSION_COLUMNS =
  "r.version_id, v.number AS version_number, v.created_at AS version_created_at, v.bundle_hash";

interface RunParent {
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string;
  readonly map_index: number;
  readonly is_sub_dag: boolean;
  readonly place: MapPlace;
}

type StoredRow = Omit<DagRunRow, "parent"> & {
  readonly parent: (Omit<RunParent, "place"> & { readonly id: number; readonly version_id: number }) | null;
};

/** The filter by run that lists of runs, task instances and outputs share. */
export interface RunFilter {
  /** Absent: all DAGs. */
  readonly dagIds?: readonly string[];
  readonly dagIdPattern?: string;
  readonly dagIdPrefix?: string;
  readonly runIds?: readonly string[];
  readonly runIdPattern?: string;
  readonly runIdPrefix?: string;
  readonly runAfter?: Range<Date>;
  readonly logicalDate?: Range<Date>;
}

/** The conditions on the run `r`. */
export function runConditions(filter: RunFilter): Conditions {
  return new Conditions()
    .oneOf("r.dag_id", filter.dagIds)
    .matches("r.dag_id", filter.dagIdPattern)
    .startsWith("r.dag_id", filter.dagIdPrefix)
    .oneOf("r.run_id", filter.runIds)
    .matches("r.run_id", filter.runIdPattern)
    .startsWith("r.run_id", filter.runIdPrefix)
    .between("r.run_after", filter.runAfter)
    .between("r.logical_date", filter.logicalDate);
}

export interface DagRunFilter extends RunFilter {
  readonly userPattern?: string;
  readonly userPrefix?: string;
  readonly states?: readonly string[];
  readonly runTypes?: readonly string[];
  readonly runKinds?: readonly string[];
  readonly versions?: readonly number[];
  readonly bundleHash?: string;
  readonly confContains?: string;
  /** By logical date or, for a run without one, by `run_after`. */
  readonly runDate?: Range<Date>;
  readonly startedAt?: Range<Date>;
  readonly endedAt?: Range<Date>;
  readonly durationSeconds?: Range<number>;
  readonly updatedAt?: Range<Date>;
  readonly partitionPattern?: string;
  readonly partitionPrefix?: string;
  /** Matches the URI of an asset whose events created the run. */
  readonly assetPattern?: string;
  /** The run whose tasks created these runs. */
  readonly parent?: { readonly dagId: string; readonly runId: string };
  /** Matches nothing: the filter names an unknown kind of run. */
  readonly nothing?: boolean;
}

/** The latest recorded time: created, queued, started or ended. Notes do not change it. */
const UPDATED_AT = "GREATEST(r.created_at, r.queued_at, r.started_at, r.ended_at)";
const RUN_DATE = "COALESCE(r.logical_date, r.run_after)";
const DURATION = "EXTRACT(EPOCH FROM r.ended_at - r.started_at)";

export const DAG_RUN_ORDER = {
  id: "r.id",
  dag_id: "r.dag_id",
  run_id: "r.run_id",
  dag_run_id: "r.run_id",
  run_type: "r.run_type",
  state: "r.state",
  logical_date: "r.logical_date",
  run_after: "r.run_after",
  start_date: "r.started_at",
  end_date: "r.ended_at",
  queued_at: "r.queued_at",
  data_interval_start: "r.interval_start",
  data_interval_end: "r.interval_end",
  duration: DURATION,
  updated_at: UPDATED_AT,
  conf: "r.conf::text",
  // Runs have no partition date; the column exists in Airflow's API.
  partition_date: "NULL::timestamptz",
} as const;

export async function listDagRuns(
  connection: Connection,
  filter: DagRunFilter,
  page: Page,
): Promise<ListedPage<DagRunRow>> {
  const listed = await listPage<StoredRow>(connection, {
    columns: COLUMNS,
    from: FROM,
    where: conditions(await withKnownDags(connection, filter)),
    order: DAG_RUN_ORDER,
    tiebreak: "r.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
  return { ...listed, rows: await withParentPlaces(connection, listed.rows) };
}

/**
 * The DAGs that a pattern means, in its place. The planner knows how many runs a DAG has, and nothing of a pattern: it would read the
 * whole history for a DAG with few runs.
 */
async function withKnownDags(
  connection: Connection,
  { dagIdPattern, dagIdPrefix, ...filter }: DagRunFilter,
): Promise<DagRunFilter> {
  const where = new Conditions().matches("d.dag_id", dagIdPattern).startsWith("d.dag_id", dagIdPrefix);
  if (where.isEmpty) return filter;
  where.oneOf("d.dag_id", filter.dagIds);
  const rows = await connection.rows<{ dag_id: string }>(
    adhoc(`SELECT d.dag_id FROM dag d ${where}`),
    where.values,
  );
  return {
    ...filter,
    dagIds: rows.map(({ dag_id }) => dag_id),
    nothing: filter.nothing || rows.length === 0,
  };
}

export function findDagRun(
  connection: Connection,
  dagId: string,
  runId: string,
): Promise<DagRunRow | undefined> {
  return findRun(connection, new Conditions().equals("r.dag_id", dagId).equals("r.run_id", runId));
}

export function findDagRunById(connection: Connection, id: number): Promise<DagRunRow | undefined> {
  return findRun(connection, new Conditions().equals("r.id", id));
}

async function findRun(connection: Connection, where: Conditions): Promise<DagRunRow | undefined> {
  const row = await first<StoredRow>(connection, { columns: COLUMNS, from: FROM, where });
  return row && (await withParentPlaces(connection, [row]))[0];
}

/** Adds a statement only if an instance of a map has created a run. */
async function withParentPlaces(connection: Connection, rows: readonly StoredRow[]): Promise<DagRunRow[]> {
  const parents = rows.flatMap(({ parent }) => parent ?? []);
  const keys = parents.map(({ id, map_index, task_id, version_id }) => ({
    dag_run_id: id,
    map_index,
    task_id,
    version_id,
  }));
  const places = new Map((await readMapPlaces(connection, keys)).map((place, at) => [parents[at], place]));
  return rows.map(({ parent, ...row }) => {
    if (parent === null) return { ...row, parent };
    const { id: _, version_id: __, ...shown } = parent;
    return { ...row, parent: { ...shown, place: places.get(parent)! } };
  });
}

/** By id; deleted runs are missing. */
export async function readRunStates(
  connection: Connection,
  ids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const rows = await connection.rows<{ id: number; state: string }>(READ_STATES, [ids]);
  return new Map(rows.map(({ id, state }) => [id, state]));
}

/** The runs affected by a bulk edit, oldest first: by id, by dates, or before and after a given run. */
export interface RunReach {
  readonly dagId: string;
  readonly runId?: string;
  readonly from?: Date;
  readonly to?: Date;
  /** With `runId`: also the runs with an earlier, or a later, logical date. */
  readonly past?: boolean;
  readonly future?: boolean;
}

export async function reachRuns(connection: Connection, reach: RunReach): Promise<DagRunRow[]> {
  const where = new Conditions().equals("r.dag_id", reach.dagId);
  if (reach.runId !== undefined) {
    const anchor = where.bind(reach.runId);
    const date = `(SELECT a.logical_date FROM dag_run a WHERE a.dag_id = r.dag_id AND a.run_id = ${anchor})`;
    const ways = [`r.run_id = ${anchor}`];
    if (reach.past) ways.push(`r.logical_date < ${date}`);
    if (reach.future) ways.push(`r.logical_date > ${date}`);
    where.raw(`(${ways.join(" OR ")})`);
  }
  where.between(RUN_DATE, { gte: reach.from, lte: reach.to });
  const rows = adhoc(`SELECT ${COLUMNS} FROM ${FROM} ${where} ORDER BY r.id`);
  return withParentPlaces(connection, await connection.rows<StoredRow>(rows, where.values));
}

const READ_STATES = statement(
  "dag-run-read-states",
  "SELECT id, state FROM dag_run WHERE id = ANY($1::int8[])",
);

/** For the run `r` and its version `v`: manifests are large, so they are read only for runs with a retry. */
const MAX_TRIES = `CASE WHEN r.try_number > 1 OR r.retry_at IS NOT NULL
    THEN 1 + coalesce((v.manifest->'runRetry'->>'retries')::int, 0) END`;

const COLUMNS = `r.id, r.dag_id, r.run_id, r.run_type, r.state, r.logical_date, r.interval_start, r.interval_end, r.run_after,
  r.conf, r.triggered_by, r.triggering_user, r.note, r.end_reason, r.partition_key, r.queued_at, r.started_at, r.ended_at, r.owner_job,
  r.try_number, r.retry_at, ${MAX_TRIES} AS max_tries, ${RUN_VERSION_COLUMNS},
  CASE WHEN p.id IS NOT NULL THEN json_build_object('dag_id', p.dag_id, 'dag_run_id', p.run_id, 'task_id', r.parent_task_id,
    'map_index', r.parent_map_index, 'is_sub_dag', r.parent_try IS NOT NULL,
    'id', p.id, 'version_id', p.version_id) END AS parent`;

const FROM =
  "dag_run r JOIN dag_version v ON v.id = r.version_id LEFT JOIN dag_run p ON p.id = r.parent_run_id";

function conditions(filter: DagRunFilter): Conditions {
  const where = runConditions(filter)
    .matches("r.triggering_user", filter.userPattern)
    .startsWith("r.triggering_user", filter.userPrefix)
    .oneOf("r.state", filter.states)
    .oneOf("r.run_type", filter.runTypes)
    .oneOf("r.run_type", filter.runKinds)
    .oneOf("v.number", filter.versions)
    .equals("v.bundle_hash", filter.bundleHash)
    .between(RUN_DATE, filter.runDate)
    .between("r.started_at", filter.startedAt)
    .between("r.ended_at", filter.endedAt)
    .between(DURATION, filter.durationSeconds)
    .between(UPDATED_AT, filter.updatedAt)
    .matches("r.partition_key", filter.partitionPattern)
    .startsWith("r.partition_key", filter.partitionPrefix)
    .equals("p.dag_id", filter.parent?.dagId)
    .equals("p.run_id", filter.parent?.runId)
    .nothingIf(filter.nothing);
  const asset = new Conditions(where).matches("a.uri", filter.assetPattern);
  if (!asset.isEmpty) {
    where.raw(`EXISTS (SELECT 1 FROM asset_event_run x JOIN asset_event e ON e.id = x.event_id
      JOIN asset a ON a.id = e.asset_id ${asset} AND x.dag_run_id = r.id)`);
  }
  if (filter.confContains) where.raw(`position(${where.bind(filter.confContains)} in r.conf::text) > 0`);
  return where;
}

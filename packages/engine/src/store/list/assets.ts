/** Assets, their aliases and their events, as the API lists them. */
import { type AssetEventRow, EVENT_COLUMNS } from "../asset/asset-events.ts";
import type { Connection } from "../database/database.ts";
import {
  COUNTED_EXACTLY,
  Conditions,
  first,
  type Listed,
  list,
  type Page,
  type Range,
} from "../page/query.ts";

export interface AssetUse {
  readonly dag_id: string;
  /** "": the DAG's schedule. */
  readonly task_id: string;
  readonly kind: "schedule" | "produces" | "consumes";
  readonly created_at: string;
}

export interface AliasRow {
  readonly id: number;
  readonly name: string;
  readonly group_name: string;
}

export interface AssetRow {
  readonly id: number;
  readonly uri: string;
  readonly group_name: string;
  readonly description: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly uses: readonly AssetUse[];
  readonly aliases: readonly AliasRow[];
  readonly last_event_id: number | null;
  readonly last_event_at: Date | null;
}

export interface AssetFilter {
  readonly id?: number;
  readonly uri?: string | undefined;
  readonly uriPattern?: string | undefined;
  readonly uriPrefix?: string | undefined;
  readonly dagIds?: readonly string[] | undefined;
  /** Only assets that a DAG names or that have an event. */
  readonly onlyActive?: boolean;
}

export const ASSET_ORDER = {
  id: "a.id",
  name: "a.uri",
  uri: "a.uri",
  created_at: "a.created_at",
  updated_at: "a.updated_at",
} as const;

const IS_USED =
  "FROM asset_use u JOIN dag d ON d.dag_id = u.dag_id AND NOT d.is_stale WHERE u.asset_id = a.id";

const ASSET_COLUMNS = `a.id, a.uri, a.group_name, a.description, a.created_at, a.updated_at,
  (SELECT coalesce(json_agg(json_build_object('dag_id', u.dag_id, 'task_id', u.task_id, 'kind', u.kind,
                                              'created_at', u.created_at) ORDER BY u.dag_id, u.task_id), '[]')
   ${IS_USED}) AS uses,
  (SELECT coalesce(json_agg(json_build_object('id', l.id, 'name', l.name, 'group_name', l.group_name) ORDER BY l.id), '[]')
   FROM asset_alias l WHERE EXISTS (SELECT 1 FROM asset_event e WHERE e.alias = l.name AND e.asset_id = a.id)) AS aliases,
  last.id AS last_event_id, last.created_at AS last_event_at`;

/** Index: asset_event_asset. */
const ASSETS_FROM = `asset a LEFT JOIN LATERAL (
  SELECT e.id, e.created_at FROM asset_event e WHERE e.asset_id = a.id ORDER BY e.id DESC LIMIT 1) AS last ON true`;

export function listAssets(db: Connection, filter: AssetFilter, page: Page): Promise<Listed<AssetRow>> {
  return list(db, {
    columns: ASSET_COLUMNS,
    from: ASSETS_FROM,
    where: assetConditions(filter),
    order: ASSET_ORDER,
    tiebreak: "a.id",
    page,
  });
}

export function findAsset(
  db: Connection,
  which: { readonly id: number } | { readonly uri: string },
): Promise<AssetRow | undefined> {
  return first(db, { columns: ASSET_COLUMNS, from: ASSETS_FROM, where: assetConditions(which) });
}

function assetConditions(filter: AssetFilter): Conditions {
  const where = new Conditions()
    .equals("a.id", filter.id)
    .equals("a.uri", filter.uri)
    .matches("a.uri", filter.uriPattern)
    .startsWith("a.uri", filter.uriPrefix);
  if (filter.dagIds !== undefined && filter.dagIds.length > 0)
    where.raw(`EXISTS (SELECT 1 ${IS_USED} AND u.dag_id = ANY(${where.bind(filter.dagIds)}))`);
  if (filter.onlyActive === true) where.raw(`(last.id IS NOT NULL OR EXISTS (SELECT 1 ${IS_USED}))`);
  return where;
}

export const ALIAS_ORDER = { id: "l.id", name: "l.name" } as const;

export interface AliasFilter {
  readonly id?: number;
  readonly namePattern?: string | undefined;
  readonly namePrefix?: string | undefined;
}

export function listAliases(db: Connection, filter: AliasFilter, page: Page): Promise<Listed<AliasRow>> {
  return list(db, {
    columns: "l.id, l.name, l.group_name",
    from: "asset_alias l",
    where: new Conditions()
      .equals("l.id", filter.id)
      .matches("l.name", filter.namePattern)
      .startsWith("l.name", filter.namePrefix),
    order: ALIAS_ORDER,
    tiebreak: "l.id",
    page,
  });
}

/** A run that an event created. */
export interface MadeRun {
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly logical_date: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly interval_start: string | null;
  readonly interval_end: string | null;
  readonly partition_key: string | null;
}

export interface ListedEventRow extends AssetEventRow {
  readonly runs: readonly MadeRun[];
}

export interface EventFilter {
  readonly id?: number;
  readonly assetId?: number | undefined;
  readonly uri?: string | undefined;
  readonly sourceDagId?: string | undefined;
  readonly sourceTaskId?: string | undefined;
  readonly sourceRunId?: string | undefined;
  readonly sourceMapIndex?: number | undefined;
  readonly partition?: string | undefined;
  readonly createdAt?: Range<Date>;
  /** The events that created this run. */
  readonly dagRunId?: number;
}

export const EVENT_ORDER = {
  timestamp: "e.id",
  source_task_id: "e.source_task_id",
  source_dag_id: "e.source_dag_id",
  source_run_id: "e.source_run_id",
  source_map_index: "e.source_map_index",
} as const;

/** Indexes: asset_event_run_event, dag_run_pkey. */
const LISTED_COLUMNS = `${EVENT_COLUMNS},
  (SELECT coalesce(json_agg(json_build_object('dag_id', r.dag_id, 'run_id', r.run_id, 'state', r.state,
     'logical_date', r.logical_date, 'started_at', r.started_at, 'ended_at', r.ended_at,
     'interval_start', r.interval_start, 'interval_end', r.interval_end, 'partition_key', r.partition_key)
     ORDER BY r.id), '[]')
   FROM asset_event_run x JOIN dag_run r ON r.id = x.dag_run_id WHERE x.event_id = e.id) AS runs`;

const EVENTS_FROM = "asset_event e JOIN asset a ON a.id = e.asset_id";

export function listEvents(db: Connection, filter: EventFilter, page: Page): Promise<Listed<ListedEventRow>> {
  return list(db, {
    columns: LISTED_COLUMNS,
    from: EVENTS_FROM,
    where: eventConditions(filter),
    order: EVENT_ORDER,
    tiebreak: "e.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

export function findEvent(db: Connection, id: number): Promise<ListedEventRow | undefined> {
  return first(db, { columns: LISTED_COLUMNS, from: EVENTS_FROM, where: eventConditions({ id }) });
}

function eventConditions(filter: EventFilter): Conditions {
  const where = new Conditions()
    .equals("e.id", filter.id)
    .equals("e.asset_id", filter.assetId)
    .equals("a.uri", filter.uri)
    .equals("e.source_dag_id", filter.sourceDagId)
    .equals("e.source_task_id", filter.sourceTaskId)
    .equals("e.source_run_id", filter.sourceRunId)
    .equals("e.source_map_index", filter.sourceMapIndex)
    .equals("e.partition_key", filter.partition)
    .between("e.created_at", filter.createdAt);
  if (filter.dagRunId !== undefined) {
    const run = where.bind(filter.dagRunId);
    where.raw(`e.id IN (SELECT x.event_id FROM asset_event_run x WHERE x.dag_run_id = ${run})`);
  }
  return where;
}

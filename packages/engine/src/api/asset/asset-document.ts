/** Assets and their events in the form of Airflow's API, extended by payloads that are not objects. */
import type { Json } from "@tradewind/sdk/manifest";
import { z } from "zod";
import type { QueuedEvents } from "../../store/asset/asset-queue.ts";
import type { AliasRow, AssetRow, AssetUse, ListedEventRow, MadeRun } from "../../store/list/assets.ts";
import { date, iso, nullableDate } from "../server/fields.ts";

const extra = z.record(z.string(), z.any()).nullable();

export const aliasDocument = z
  .object({ id: z.number(), name: z.string(), group: z.string() })
  .meta({ id: "AssetAliasResponse" });

const dagReference = z.object({ dag_id: z.string(), created_at: date, updated_at: date });
const taskReference = z.object({ ...dagReference.shape, task_id: z.string() });

export const assetDocument = z
  .object({
    id: z.number(),
    name: z.string(),
    uri: z.string(),
    group: z.string(),
    description: z.string().nullable(),
    extra,
    created_at: date,
    updated_at: date,
    scheduled_dags: z.array(dagReference),
    producing_tasks: z.array(taskReference),
    consuming_tasks: z.array(taskReference),
    aliases: z.array(aliasDocument),
    watchers: z.array(z.object({ name: z.string(), trigger_id: z.number(), created_date: date })),
    last_asset_event: z.object({ id: z.number().nullable(), timestamp: nullableDate }).nullable(),
  })
  .meta({ id: "AssetResponse" });

const madeRunDocument = z
  .object({
    run_id: z.string(),
    dag_id: z.string(),
    logical_date: nullableDate,
    start_date: nullableDate,
    end_date: nullableDate,
    state: z.string(),
    data_interval_start: nullableDate,
    data_interval_end: nullableDate,
    partition_key: z.string().nullable(),
  })
  .meta({ id: "DagRunAssetReference" });

export const eventDocument = z
  .object({
    id: z.number(),
    asset_id: z.number(),
    uri: z.string(),
    name: z.string(),
    group: z.string(),
    /** The payload, if it is an object. */
    extra,
    payload: z.any(),
    source_task_id: z.string().nullable(),
    source_dag_id: z.string().nullable(),
    source_run_id: z.string().nullable(),
    source_map_index: z.number(),
    created_dagruns: z.array(madeRunDocument),
    timestamp: date,
    partition_key: z.string().nullable(),
    alias: z.string().nullable(),
    sender: z.string(),
  })
  .meta({ id: "AssetEventResponse" });

export const eventList = z.object({ asset_events: z.array(eventDocument), total_entries: z.number() });

export const queuedDocument = z
  .object({
    dag_id: z.string(),
    dag_display_name: z.string(),
    asset_id: z.number(),
    uri: z.string(),
    /** The number of events; the time is that of the first one. */
    events: z.number(),
    created_at: date,
  })
  .meta({ id: "QueuedEventResponse" });

export const queuedList = z.object({ queued_events: z.array(queuedDocument), total_entries: z.number() });

export function showAsset(row: AssetRow): z.output<typeof assetDocument> {
  const of = (kind: AssetUse["kind"]) => row.uses.filter((use) => use.kind === kind);
  return {
    id: row.id,
    name: row.uri,
    uri: row.uri,
    group: row.group_name,
    description: row.description,
    extra: null,
    created_at: iso(row.created_at),
    updated_at: iso(row.updated_at),
    scheduled_dags: of("schedule").map(showUse),
    producing_tasks: of("produces").map(showTaskUse),
    consuming_tasks: of("consumes").map(showTaskUse),
    aliases: row.aliases.map(showAlias),
    watchers: [],
    last_asset_event:
      row.last_event_id === null ? null : { id: row.last_event_id, timestamp: iso(row.last_event_at) },
  };
}

export function showAlias({ group_name, id, name }: AliasRow): z.output<typeof aliasDocument> {
  return { id, name, group: group_name };
}

export function showEvent(row: ListedEventRow): z.output<typeof eventDocument> {
  return {
    id: row.id,
    asset_id: row.asset_id,
    uri: row.uri,
    name: row.uri,
    group: row.group_name,
    extra: isObject(row.payload) ? row.payload : null,
    payload: row.payload,
    source_task_id: row.source_task_id,
    source_dag_id: row.source_dag_id,
    source_run_id: row.source_run_id,
    source_map_index: row.source_map_index ?? -1,
    created_dagruns: row.runs.map(showMadeRun),
    timestamp: iso(row.created_at),
    partition_key: row.partition_key,
    alias: row.alias,
    sender: row.sender,
  };
}

export function showQueued(row: QueuedEvents): z.output<typeof queuedDocument> {
  const { asset_id, created_at, dag_id, events, uri } = row;
  return { dag_id, dag_display_name: dag_id, asset_id, uri, events, created_at: iso(created_at) };
}

function showUse({ created_at, dag_id }: AssetUse) {
  const at = isoText(created_at);
  return { dag_id, created_at: at, updated_at: at };
}

function showTaskUse(use: AssetUse) {
  return { ...showUse(use), task_id: use.task_id };
}

function showMadeRun(run: MadeRun): z.output<typeof madeRunDocument> {
  return {
    run_id: run.run_id,
    dag_id: run.dag_id,
    logical_date: isoOrNull(run.logical_date),
    start_date: isoOrNull(run.started_at),
    end_date: isoOrNull(run.ended_at),
    state: run.state,
    data_interval_start: isoOrNull(run.interval_start),
    data_interval_end: isoOrNull(run.interval_end),
    partition_key: run.partition_key,
  };
}

/** An instant from JSON of the database. */
function isoText(text: string): string {
  return new Date(text).toISOString();
}

function isoOrNull(text: string | null): string | null {
  return text === null ? null : isoText(text);
}

function isObject(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

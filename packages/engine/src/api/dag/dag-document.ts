/** A DAG in the JSON of Airflow's API. */
import { z } from "zod";
import { zoneOf } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import type { DagRow, groupRetries } from "../../store/list/dags.ts";
import { type LastRunRow, readLastRuns } from "../../store/list/last-runs.ts";
import { assetExpression, isPartitioned } from "../asset/asset-expression.ts";
import { showVersion, versionDocument } from "../server/documents.ts";
import { BUNDLE_NAME, date, iso, nullableDate, RUN_STATES } from "../server/fields.ts";
import {
  scheduleError,
  scheduleErrorDocument,
  timetable,
  upcoming,
  upcomingDocument,
} from "./schedule-document.ts";

const lastRunDocument = z
  .object({
    dag_run_id: z.string(),
    state: z.enum(RUN_STATES),
    logical_date: nullableDate,
    run_after: date,
    queued_at: date,
    start_date: nullableDate,
    end_date: nullableDate,
  })
  .meta({ id: "LastRun" });

const dagShape = {
  dag_id: z.string(),
  dag_display_name: z.string(),
  is_paused: z.boolean(),
  is_stale: z.boolean(),
  last_parsed_time: nullableDate,
  last_parse_duration: z.number().nullable(),
  last_expired: nullableDate,
  bundle_name: z.string().nullable(),
  bundle_version: z.string().nullable(),
  relative_fileloc: z.string().nullable(),
  fileloc: z.string(),
  description: z.string().nullable(),
  timetable_summary: z.string().nullable(),
  timetable_description: z.string().nullable(),
  timetable_partitioned: z.boolean(),
  timetable_periodic: z.boolean(),
  tags: z.array(z.object({ name: z.string(), dag_id: z.string(), dag_display_name: z.string() })),
  max_active_tasks: z.number(),
  max_active_runs: z.number().nullable(),
  max_consecutive_failed_dag_runs: z.number(),
  has_task_concurrency_limits: z.boolean(),
  has_import_errors: z.boolean(),
  next_dagrun_logical_date: nullableDate,
  next_dagrun_data_interval_start: nullableDate,
  next_dagrun_data_interval_end: nullableDate,
  next_dagrun_run_after: nullableDate,
  last_run: lastRunDocument.nullable().describe("The run with the latest run_after."),
  timezone: z.string().nullable().describe("Time zone of the schedule."),
  pause_reason: z.string().nullable().describe("Why it was paused automatically; null if a user paused it."),
  schedule_error: scheduleErrorDocument.nullable(),
  allowed_run_types: z.array(z.string()).nullable(),
  owners: z.array(z.string()),
  is_backfillable: z.boolean(),
  file_token: z.string(),
};

export const dagDocument = z.object(dagShape).meta({ id: "DAGResponse" });

export const dagDetailsDocument = z
  .object({
    ...dagShape,
    catchup: z.boolean(),
    next_runs: z.array(upcomingDocument).describe("The next ten runs of a time-based schedule."),
    dag_run_timeout: z.string().nullable(),
    jitter: z.string().nullable().describe("Maximum random delay of a scheduled run."),
    run_retries: z
      .object({ retries: z.number(), delay: z.number(), from: z.enum(["failure", "start"]) })
      .nullable()
      .describe("Retries of a failed run; the delay is in seconds."),
    group_retries: z
      .array(z.object({ group_id: z.string(), retries: z.number(), delay: z.number() }))
      .describe("Groups that are retried as a unit; the delay is in seconds."),
    asset_expression: z.record(z.string(), z.any()).nullable(),
    doc_md: z.string().nullable(),
    start_date: nullableDate,
    end_date: nullableDate,
    is_paused_upon_creation: z.boolean().nullable(),
    params: z.record(z.string(), z.any()).nullable(),
    params_schema: z.any(),
    render_template_as_native_obj: z.boolean(),
    template_search_path: z.array(z.string()).nullable(),
    last_parsed: nullableDate,
    default_args: z.record(z.string(), z.any()).nullable(),
    rerun_with_latest_version: z.boolean().nullable(),
    owner_links: z.record(z.string(), z.string()).nullable(),
    is_favorite: z.boolean(),
    active_runs_count: z.number(),
    concurrency: z.number(),
    latest_dag_version: versionDocument.nullable(),
  })
  .meta({ id: "DAGDetailsResponse" });

export async function showDags(
  connection: Connection,
  rows: readonly DagRow[],
): Promise<z.output<typeof dagDocument>[]> {
  const dagIds = rows.map((row) => row.dag_id);
  const lastRuns = dagIds.length === 0 ? new Map() : await readLastRuns(connection, dagIds);
  return rows.map((row) => show(row, lastRuns.get(row.dag_id)));
}

export async function showDag(connection: Connection, row: DagRow): Promise<z.output<typeof dagDocument>> {
  const [shown] = await showDags(connection, [row]);
  return shown!;
}

function show(row: DagRow, lastRun: LastRunRow | undefined): z.output<typeof dagDocument> {
  const { manifest } = row;
  return {
    dag_id: row.dag_id,
    dag_display_name: row.dag_id,
    is_paused: row.is_paused,
    is_stale: row.is_stale,
    last_parsed_time: iso(row.last_parsed_at),
    last_parse_duration: null,
    last_expired: null,
    bundle_name: BUNDLE_NAME,
    bundle_version: row.bundle_hash,
    relative_fileloc: row.file,
    fileloc: row.file,
    description: manifest?.description ?? null,
    ...timetable(manifest?.schedule),
    timetable_partitioned: isPartitioned(manifest?.schedule),
    tags: (manifest?.tags ?? []).map((name) => ({ name, dag_id: row.dag_id, dag_display_name: row.dag_id })),
    max_active_tasks: manifest?.maxActiveTasks ?? 0,
    max_active_runs: manifest?.maxActiveRuns ?? null,
    max_consecutive_failed_dag_runs: manifest?.pauseAfterFailures ?? 0,
    has_task_concurrency_limits: row.has_task_limits,
    has_import_errors: row.has_import_errors,
    next_dagrun_logical_date: iso(row.next_logical_date),
    next_dagrun_data_interval_start: iso(row.next_interval_start),
    next_dagrun_data_interval_end: iso(row.next_interval_end),
    next_dagrun_run_after: iso(row.next_run_after),
    last_run: lastRun === undefined ? null : showLastRun(lastRun),
    timezone: zoneOf(manifest?.schedule),
    pause_reason: row.pause_reason,
    schedule_error: scheduleError(row),
    allowed_run_types: null,
    owners: manifest?.owner ? [manifest.owner] : [],
    file_token: row.file,
  };
}

function showLastRun(run: LastRunRow): z.output<typeof lastRunDocument> {
  return {
    dag_run_id: run.run_id,
    state: run.state as (typeof RUN_STATES)[number],
    logical_date: iso(run.logical_date),
    run_after: iso(run.run_after),
    queued_at: iso(run.queued_at),
    start_date: iso(run.started_at),
    end_date: iso(run.ended_at),
  };
}

export async function showDagDetails(
  connection: Connection,
  row: DagRow,
  { activeRuns, groups }: { activeRuns: number; groups: Awaited<ReturnType<typeof groupRetries>> },
): Promise<z.output<typeof dagDetailsDocument>> {
  const { manifest } = row;
  const again = manifest?.runRetry;
  return {
    ...(await showDag(connection, row)),
    catchup: manifest?.catchup ?? false,
    next_runs: upcoming(row),
    dag_run_timeout: manifest?.runTimeoutMs == null ? null : `PT${manifest.runTimeoutMs / 1000}S`,
    jitter: manifest?.jitterMs === undefined ? null : `PT${manifest.jitterMs / 1000}S`,
    run_retries: again ? { retries: again.retries, delay: again.delayMs / 1000, from: again.from } : null,
    group_retries: groups.map(({ delay_ms, group_id, retries }) => {
      return { group_id, retries, delay: delay_ms / 1000 };
    }),
    asset_expression: assetExpression(manifest?.schedule),
    doc_md: manifest?.docs ?? null,
    start_date: manifest?.start ?? null,
    end_date: manifest?.end ?? null,
    is_paused_upon_creation: null,
    params: defaultsOf(manifest?.paramsSchema),
    params_schema: manifest?.paramsSchema ?? null,
    render_template_as_native_obj: false,
    template_search_path: null,
    last_parsed: iso(row.last_parsed_at),
    default_args: null,
    rerun_with_latest_version: null,
    owner_links: null,
    is_favorite: false,
    active_runs_count: activeRuns,
    concurrency: manifest?.maxActiveTasks ?? 0,
    latest_dag_version:
      row.version_id === null ||
      row.version_number === null ||
      row.bundle_hash === null ||
      row.version_created_at === null
        ? null
        : showVersion({
            id: row.version_id,
            dag_id: row.dag_id,
            number: row.version_number,
            bundle_hash: row.bundle_hash,
            created_at: row.version_created_at,
          }),
  };
}

/** Parameters with a default, in Airflow's form. */
function defaultsOf(schema: unknown): Record<string, unknown> | null {
  const properties = (schema as { properties?: Record<string, { default?: unknown }> } | null)?.properties;
  if (typeof properties !== "object" || properties === null) return null;
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, property]) =>
      property !== null && typeof property === "object" && "default" in property
        ? [[name, property.default]]
        : [],
    ),
  );
}

/** DAGs as the API lists them: the row, the manifest of the current version, and facts about its runs. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { Conditions, first, type Listed, list, type Page, type Range } from "../page/query.ts";
import type { ScheduleError } from "../plan/timetable-plans.ts";

export interface DagRow {
  readonly dag_id: string;
  readonly file: string;
  readonly is_paused: boolean;
  readonly is_stale: boolean;
  readonly last_parsed_at: Date;
  readonly next_logical_date: Date | null;
  readonly next_interval_start: Date | null;
  readonly next_interval_end: Date | null;
  readonly next_run_after: Date | null;
  /** Why it is paused, unless a user paused it. */
  readonly pause_reason: string | null;
  /** For a timetable class: the error, the number of consecutive failures, and the time of the next call. */
  readonly schedule_error: ScheduleError | null;
  readonly schedule_failures: number | null;
  readonly schedule_retry_at: Date | null;
  readonly has_import_errors: boolean;
  readonly version_id: number | null;
  readonly version_number: number | null;
  readonly version_created_at: Date | null;
  readonly bundle_hash: string | null;
  readonly has_task_limits: boolean;
  /** null until the first valid version. */
  readonly manifest: DagHeader | null;
}

/** A manifest without its tasks, of which there may be a hundred thousand. */
type DagHeader = Omit<DagManifest, "groups" | "tasks">;

export interface DagFilter {
  readonly dagIdPattern?: string;
  readonly dagIdPrefix?: string;
  readonly tags?: readonly string[];
  readonly tagsMatch?: "any" | "all";
  readonly owners?: readonly string[];
  readonly paused?: boolean;
  readonly excludeStale?: boolean;
  readonly hasImportErrors?: boolean;
  readonly lastRunState?: string;
  readonly runStates?: readonly string[];
  readonly runStartedAt?: Range<Date>;
  readonly runEndedAt?: Range<Date>;
  readonly bundleHash?: string;
  /** A kind, or a kind and its style: "cron", "cron/trigger". */
  readonly scheduleKinds?: readonly string[];
  readonly hasAssetSchedule?: boolean;
  /** Matches the URI of an asset in its schedule. */
  readonly assetPattern?: string;
  /** Matches nothing: the filter names an unknown kind of DAG. */
  readonly nothing?: boolean;
}

export const DAG_ORDER = {
  dag_id: "d.dag_id",
  dag_display_name: "d.dag_id",
  is_paused: "d.is_paused",
  next_dagrun: "d.next_logical_date",
  next_dagrun_logical_date: "d.next_logical_date",
  next_dagrun_run_after: "d.next_run_after",
  last_parsed_time: "d.last_parsed_at",
  state: lastRun("state"),
  start_date: lastRun("started_at"),
  last_run_state: lastRun("state"),
  last_run_start_date: lastRun("started_at"),
  last_run_run_after: lastRun("run_after"),
} as const;

export function listDags(connection: Connection, filter: DagFilter, page: Page): Promise<Listed<DagRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: FROM,
    where: conditions(filter),
    order: DAG_ORDER,
    tiebreak: "d.dag_id",
    page,
  });
}

export function findDag(connection: Connection, dagId: string): Promise<DagRow | undefined> {
  return first(connection, {
    columns: COLUMNS,
    from: FROM,
    where: new Conditions().equals("d.dag_id", dagId),
  });
}

export async function dagExists(connection: Connection, dagId: string): Promise<boolean> {
  return (await connection.one(adhoc("SELECT 1 FROM dag WHERE dag_id = $1"), [dagId])) !== undefined;
}

export async function countActiveRuns(connection: Connection, dagId: string): Promise<number> {
  const row = await connection.one<{ count: number }>(
    adhoc("SELECT count(*)::int8 AS count FROM dag_run WHERE dag_id = $1 AND state = 'running'"),
    [dagId],
  );
  return row?.count ?? 0;
}

interface GroupRetries {
  readonly group_id: string;
  readonly retries: number;
  readonly delay_ms: number;
}

/** The groups with retries in the current version of a DAG. */
export function groupRetries(connection: Connection, dagId: string): Promise<GroupRetries[]> {
  const text = `SELECT g->>'groupId' AS group_id, (g->'retry'->>'retries')::int AS retries,
      (g->'retry'->>'delayMs')::float8 AS delay_ms
    FROM dag d JOIN dag_version v ON v.id = d.version_id, jsonb_array_elements(v.manifest->'groups') AS g
    WHERE d.dag_id = $1 AND g ? 'retry' ORDER BY 1`;
  return connection.rows(adhoc(text), [dagId]);
}

export interface DagStat {
  readonly dag_id: string;
  readonly queued: number;
  readonly running: number;
  readonly success: number;
  readonly failed: number;
}

export function dagStats(connection: Connection, dagIds: readonly string[] | undefined): Promise<DagStat[]> {
  const where = new Conditions().oneOf("d.dag_id", dagIds);
  const text = `SELECT d.dag_id,
      count(*) FILTER (WHERE r.state = 'queued')::int8 AS queued, count(*) FILTER (WHERE r.state = 'running')::int8 AS running,
      count(*) FILTER (WHERE r.state = 'success')::int8 AS success, count(*) FILTER (WHERE r.state = 'failed')::int8 AS failed
    FROM dag d LEFT JOIN dag_run r USING (dag_id) ${where} GROUP BY d.dag_id ORDER BY d.dag_id`;
  return connection.rows(adhoc(text), where.values);
}

export function listTags(
  connection: Connection,
  filter: { pattern?: string; prefix?: string },
  page: Page,
): Promise<Listed<{ name: string }>> {
  return list(connection, {
    columns: "t.name",
    from: `(SELECT DISTINCT jsonb_array_elements_text(v.manifest->'tags') AS name
            FROM dag d JOIN dag_version v ON v.id = d.version_id WHERE NOT d.is_stale) t`,
    where: new Conditions().matches("t.name", filter.pattern).startsWith("t.name", filter.prefix),
    order: { name: "t.name" },
    tiebreak: "t.name",
    page,
  });
}

const COLUMNS = `d.dag_id, d.file, d.is_paused, d.is_stale, d.last_parsed_at, d.next_logical_date, d.next_interval_start,
  d.next_interval_end, d.next_run_after, d.pause_reason, t.error AS schedule_error, t.failures AS schedule_failures,
  t.ask_at AS schedule_retry_at, v.id AS version_id, v.number AS version_number, v.created_at AS version_created_at,
  v.bundle_hash, v.manifest - 'tasks' - 'groups' AS manifest,
  COALESCE(v.manifest @? '$.tasks[*] ? (@.maxActivePerDag != null || @.maxActivePerRun != null)', false) AS has_task_limits,
  EXISTS (SELECT FROM import_error e WHERE e.file = d.file) AS has_import_errors`;

const FROM =
  "dag d LEFT JOIN dag_version v ON v.id = d.version_id LEFT JOIN dag_timetable t ON t.dag_id = d.dag_id";

function lastRun(column: string): string {
  return `(SELECT r.${column} FROM dag_run r WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1)`;
}

function conditions(filter: DagFilter): Conditions {
  const where = new Conditions()
    .matches("d.dag_id", filter.dagIdPattern)
    .startsWith("d.dag_id", filter.dagIdPrefix)
    .equals("d.is_paused", filter.paused)
    .oneOf("v.manifest->>'owner'", filter.owners)
    .equals(lastRun("state"), filter.lastRunState)
    .equals("v.bundle_hash", filter.bundleHash)
    .nothingIf(filter.nothing);
  if (filter.scheduleKinds !== undefined)
    where.raw(
      `ARRAY[v.manifest->'schedule'->>'kind', concat_ws('/', v.manifest->'schedule'->>'kind', v.manifest->'schedule'->>'style')]
         && ${where.bind(filter.scheduleKinds)}::text[]`,
    );
  if (filter.excludeStale) where.raw("NOT d.is_stale");
  if (filter.hasImportErrors !== undefined) {
    where.raw(
      `EXISTS (SELECT FROM import_error e WHERE e.file = d.file) = ${where.bind(filter.hasImportErrors)}`,
    );
  }
  if (filter.tags !== undefined && filter.tags.length > 0) {
    where.raw(
      `v.manifest->'tags' ${filter.tagsMatch === "all" ? "?&" : "?|"} ${where.bind(filter.tags)}::text[]`,
    );
  }
  if (filter.hasAssetSchedule !== undefined)
    where.raw(`COALESCE(v.manifest->'schedule' ? 'gather', false) = ${where.bind(filter.hasAssetSchedule)}`);
  const asset = new Conditions(where).matches("a.uri", filter.assetPattern);
  if (!asset.isEmpty) {
    where.raw(`EXISTS (SELECT 1 FROM asset_use u JOIN asset a ON a.id = u.asset_id
      ${asset} AND u.dag_id = d.dag_id AND u.kind = 'schedule')`);
  }
  return withRuns(where, filter);
}

/** DAGs with at least one run that matches all run filters. */
function withRuns(where: Conditions, filter: DagFilter): Conditions {
  const parts: string[] = [];
  const bounds = [
    ["started_at", filter.runStartedAt],
    ["ended_at", filter.runEndedAt],
  ] as const;
  for (const [column, range] of bounds) {
    if (range?.gte) parts.push(`r.${column} >= ${where.bind(range.gte)}`);
    if (range?.gt) parts.push(`r.${column} > ${where.bind(range.gt)}`);
    if (range?.lte) parts.push(`r.${column} <= ${where.bind(range.lte)}`);
    if (range?.lt) parts.push(`r.${column} < ${where.bind(range.lt)}`);
  }
  if (filter.runStates !== undefined && filter.runStates.length > 0) {
    parts.push(`r.state = ANY(${where.bind(filter.runStates)})`);
  }
  return parts.length === 0
    ? where
    : where.raw(`EXISTS (SELECT FROM dag_run r WHERE r.dag_id = d.dag_id AND ${parts.join(" AND ")})`);
}

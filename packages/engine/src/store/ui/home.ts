/** What happens now, for the first page. Each count starts from an index without history, and stops at a limit. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { COUNTED_EXACTLY } from "../page/query.ts";
import { type Bounded, bounded } from "./dag-table.ts";

const MOST = COUNTED_EXACTLY + 1;

export interface NowCounts {
  readonly running: Bounded & { readonly dags: number; readonly oldest: Date | null };
  readonly queued: Bounded & { readonly dags: number; readonly oldest: Date | null };
  readonly waiting: Bounded & { readonly dags: number; readonly oldest: Date | null };
}

interface CountRow {
  readonly kind: keyof NowCounts;
  readonly count: number;
  readonly dags: number;
  readonly oldest: Date | null;
}

const NOW = statement(
  "ui-now-counts",
  `SELECT 'running' AS kind, count(*)::int AS count, count(DISTINCT r.dag_id)::int AS dags, min(r.started_at) AS oldest
   FROM (SELECT dag_id, started_at FROM dag_run WHERE state = 'running' LIMIT ${MOST}) r
   UNION ALL
   SELECT 'queued', count(*)::int, count(DISTINCT r.dag_id)::int, min(r.queued_at)
   FROM (SELECT dag_id, queued_at FROM dag_run WHERE state = 'queued' ORDER BY run_after, id LIMIT ${MOST}) r
   UNION ALL
   SELECT 'waiting', count(*)::int, 0, min(w.deferred_at)
   FROM (SELECT deferred_at FROM deferral WHERE waits_on IS NOT NULL ORDER BY deferred_at LIMIT ${MOST}) w`,
);

export async function nowCounts(connection: Connection): Promise<NowCounts> {
  const rows = await connection.rows<CountRow>(NOW);
  const of = (kind: keyof NowCounts) => {
    const row = rows.find((each) => each.kind === kind);
    return { ...bounded(row), dags: row?.dags ?? 0, oldest: row?.oldest ?? null };
  };
  return { running: of("running"), queued: of("queued"), waiting: of("waiting") };
}

export interface ComponentRow {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly name: string | null;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly is_alive: boolean;
  readonly started_at: Date;
  /** Seconds. */
  readonly heartbeat_age: number;
}

const MOST_COMPONENTS = 500;

/**
 * Running services, and those that died within the last hour and were neither stopped nor replaced: each process that started
 * after the last heartbeat of a dead one of its kind replaces one.
 */
const COMPONENTS = statement(
  "ui-components",
  `WITH recent AS (
     SELECT j.*, row_number() OVER (PARTITION BY j.kind, j.is_alive ORDER BY j.heartbeat_at DESC) AS place
     FROM (SELECT o.*, o.state = 'running' AND o.lease_until > now() AS is_alive FROM job o
           WHERE o.state = 'running' OR o.state = 'dead' AND o.ended_at > now() - interval '1 hour') j)
   SELECT j.id, j.kind, j.state, j.name, j.hostname, j.pid, j.version, j.started_at, j.is_alive,
     extract(epoch FROM now() - j.heartbeat_at)::float8 AS heartbeat_age
   FROM recent j
   WHERE j.is_alive OR j.place > (SELECT count(*) FROM job n WHERE n.kind = j.kind AND n.id > j.id AND n.started_at > j.heartbeat_at)
   ORDER BY j.kind, j.id LIMIT ${MOST_COMPONENTS}`,
);

export function components(connection: Connection): Promise<ComponentRow[]> {
  return connection.rows(COMPONENTS);
}

export interface FailedRunTask {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly try_number: number;
  readonly reason: string | null;
  /** Failed instances of the run. */
  readonly failed: number;
}

const SCANNED = 20_000;

/** The task that failed first. Runs with more instances are read up to a limit. */
const FAILED_TASKS = statement(
  "ui-failed-run-tasks",
  `SELECT k.dag_run_id, f.* FROM unnest($1::int8[]) AS k(dag_run_id) CROSS JOIN LATERAL (
     SELECT t.task_id, t.map_index, t.try_number, left(t.reason, 500) AS reason, count(*) OVER ()::int AS failed
     FROM (SELECT * FROM task_instance i WHERE i.dag_run_id = k.dag_run_id LIMIT ${SCANNED}) t
     WHERE t.state = 'failed' ORDER BY t.ended_at, t.task_id, t.map_index LIMIT 1) f`,
);

export async function failedRunTasks(
  connection: Connection,
  dagRunIds: readonly number[],
): Promise<ReadonlyMap<number, FailedRunTask>> {
  const rows = await connection.rows<FailedRunTask>(FAILED_TASKS, [dagRunIds]);
  return new Map(rows.map((row) => [row.dag_run_id, row]));
}

export interface ErrorCounts {
  readonly import_errors: number;
  readonly dead_letters: number;
  readonly dead_deliveries: number;
}

/** Each up to 1,000. */
const ERRORS = statement(
  "ui-error-counts",
  `SELECT (SELECT count(*)::int FROM (SELECT FROM import_error LIMIT 1000) e) AS import_errors,
     (SELECT count(*)::int FROM (SELECT FROM signal_dead_letter LIMIT 1000) l) AS dead_letters,
     (SELECT count(*)::int FROM (SELECT FROM delivery WHERE state = 'dead' LIMIT 1000) d) AS dead_deliveries`,
);

export async function errorCounts(connection: Connection): Promise<ErrorCounts> {
  return (await connection.one<ErrorCounts>(ERRORS))!;
}

export interface ActiveBackfill {
  readonly id: number;
  readonly dag_id: string;
  readonly state: string;
  readonly from_date: Date;
  readonly to_date: Date;
  readonly total_runs: number;
  /** Dates that were handled, and their runs by state. */
  readonly handled: number;
  readonly queued: number;
  readonly running: number;
  readonly failed: number;
  readonly created_at: Date;
}

const BACKFILLS = statement(
  "ui-active-backfills",
  `SELECT b.id, b.dag_id, b.state, b.from_date, b.to_date, b.total_runs, b.next_ordinal AS handled, b.created_at, c.*
   FROM backfill b CROSS JOIN LATERAL (
     SELECT count(*) FILTER (WHERE r.state = 'queued')::int AS queued, count(*) FILTER (WHERE r.state = 'running')::int AS running,
       count(*) FILTER (WHERE r.state = 'failed')::int AS failed
     FROM dag_run r WHERE r.backfill_id = b.id) c
   WHERE b.state IN ('running', 'paused') ORDER BY b.id DESC LIMIT 20`,
);

export function activeBackfills(connection: Connection): Promise<ActiveBackfill[]> {
  return connection.rows(BACKFILLS);
}

export interface PoolUse {
  readonly name: string;
  /** Below zero: no limit. */
  readonly slots: number;
  readonly occupied: number;
}

const POOLS = statement(
  "ui-pool-use",
  `SELECT p.name, p.slots, p.occupied FROM pool p WHERE NOT starts_with(p.name, '@')
   ORDER BY p.occupied::float8 / greatest(p.slots, 1) DESC, p.name LIMIT 20`,
);

export function poolUse(connection: Connection): Promise<PoolUse[]> {
  return connection.rows(POOLS);
}

/** The running services: schedulers, DAG processors, triggerers. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page, type Range } from "../page/query.ts";

export interface JobRow {
  readonly id: number;
  readonly kind: string;
  readonly state: string;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly started_at: Date;
  readonly heartbeat_at: Date;
  readonly ended_at: Date | null;
  readonly is_alive: boolean;
  /** Facts reported by the job itself. */
  readonly facts: Json;
}

export interface JobFilter {
  readonly kind?: string;
  readonly state?: string;
  readonly hostname?: string;
  readonly isAlive?: boolean;
  readonly startedAt?: Range<Date>;
  readonly endedAt?: Range<Date>;
  /** Matches nothing: the filter names an unknown kind of job. */
  readonly nothing?: boolean;
}

export const JOB_ORDER = {
  id: "j.id",
  state: "j.state",
  job_type: "j.kind",
  start_date: "j.started_at",
  end_date: "j.ended_at",
  latest_heartbeat: "j.heartbeat_at",
  hostname: "j.hostname",
  // Columns of Airflow's jobs that are the same for all of ours.
  dag_id: "NULL::text",
  executor_class: "NULL::text",
  unixname: "NULL::text",
} as const;

export function listJobs(connection: Connection, filter: JobFilter, page: Page): Promise<Listed<JobRow>> {
  const where = new Conditions()
    .equals("j.kind", filter.kind)
    .equals("j.state", filter.state)
    .equals("j.hostname", filter.hostname)
    .between("j.started_at", filter.startedAt)
    .between("j.ended_at", filter.endedAt)
    .nothingIf(filter.nothing);
  if (filter.isAlive !== undefined) where.raw(`${ALIVE} = ${where.bind(filter.isAlive)}`);
  return list(connection, {
    columns: COLUMNS,
    from: "job j",
    where,
    order: JOB_ORDER,
    tiebreak: "j.id",
    page,
  });
}

/** By id; deleted jobs are missing. */
export async function readJobs(
  connection: Connection,
  ids: readonly number[],
): Promise<ReadonlyMap<number, JobRow>> {
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return new Map();
  const rows = await connection.rows<JobRow>(
    adhoc(`SELECT ${COLUMNS} FROM job j WHERE j.id = ANY($1::int8[])`),
    [distinct],
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** The triggerers with a valid lease. */
export function liveTriggerers(connection: Connection): Promise<JobRow[]> {
  return connection.rows(
    adhoc(`SELECT ${COLUMNS} FROM job j WHERE j.kind = 'triggerer' AND ${ALIVE} ORDER BY j.id`),
    [],
  );
}

/** Per kind: the newest heartbeat, and whether a job of the kind has a valid lease. */
export function componentHealth(
  connection: Connection,
): Promise<{ kind: string; is_alive: boolean; heartbeat_at: Date }[]> {
  return connection.rows(
    adhoc(
      `SELECT j.kind, bool_or(${ALIVE}) AS is_alive, max(j.heartbeat_at) AS heartbeat_at FROM job j GROUP BY j.kind`,
    ),
    [],
  );
}

const ALIVE = "(j.state = 'running' AND j.lease_until > now())";
const COLUMNS = `j.id, j.kind, j.state, j.hostname, j.pid, j.version, j.started_at, j.heartbeat_at, j.ended_at, ${ALIVE} AS is_alive,
  coalesce(j.facts, CASE WHEN j.dags IS NOT NULL THEN json_build_object('dags', j.dags) END) AS facts`;

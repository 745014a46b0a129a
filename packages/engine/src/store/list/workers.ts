/** Workers as the API lists them, and what each is running. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type AssignmentKind, hasEnded } from "../execute/assignments.ts";
import { Conditions, first, type Listed, list, type Page } from "../page/query.ts";

/** "dead": its lease has expired, or a user removed it; "stopped": it signed off. */
export const WORKER_STATES = ["alive", "draining", "dead", "stopped"] as const;
type WorkerState = (typeof WORKER_STATES)[number];

export interface WorkerRow {
  readonly id: number;
  readonly name: string;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly state: WorkerState;
  /** null: the worker of one pod, which runs a single assignment. */
  readonly queues: readonly string[] | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly slots: number;
  /** Assignments that it has, without those whose end is reported. */
  readonly running: number;
  readonly started_at: Date;
  readonly heartbeat_at: Date;
  readonly heartbeat_age_s: number;
  readonly ended_at: Date | null;
}

export interface WorkerFilter {
  readonly states?: readonly WorkerState[] | undefined;
  readonly names?: readonly string[] | undefined;
  /** It serves one of these. */
  readonly queues?: readonly string[] | undefined;
}

export interface WorkerAssignment {
  readonly id: string;
  readonly kind: AssignmentKind;
  readonly executor: string;
  readonly queue: string;
  readonly claimed_at: Date;
  readonly dag_id: string;
  readonly run_id: string;
  /** null: a callback of a run or a group. */
  readonly task_id: string | null;
  readonly map_index: number | null;
  readonly try_number: number;
  /** It has to end. */
  readonly is_stopping: boolean;
}

export const WORKER_ORDER = {
  id: "j.id",
  name: "j.name",
  hostname: "j.hostname",
  version: "j.version",
  slots: "j.slots",
  start_date: "j.started_at",
  latest_heartbeat: "j.heartbeat_at",
} as const;

export function listWorkers(
  connection: Connection,
  { names, queues, states }: WorkerFilter,
  page: Page,
): Promise<Listed<WorkerRow>> {
  const where = workers().oneOf(STATE, states).oneOf("j.name", names);
  if (queues !== undefined) where.raw(`j.queues && ${where.bind(queues)}::text[]`);
  return list(connection, {
    columns: COLUMNS,
    from: FROM,
    where,
    order: WORKER_ORDER,
    tiebreak: "j.id",
    page,
  });
}

export function findWorker(connection: Connection, id: number): Promise<WorkerRow | undefined> {
  return first(connection, { columns: COLUMNS, from: FROM, where: workers().equals("j.id", id) });
}

const STATE = `CASE WHEN j.state = 'stopped' THEN 'stopped' WHEN j.state <> 'running' OR j.lease_until <= now() THEN 'dead'
  WHEN j.is_draining THEN 'draining' ELSE 'alive' END`;
const FROM = "job j";
const IS_RUNNING = `NOT ${hasEnded("a")}`;
const COLUMNS = `j.id, j.name, j.hostname, j.pid, j.version, ${STATE} AS state, j.queues,
  coalesce(j.facts->'labels', '{}'::json) AS labels, j.slots, j.started_at, j.heartbeat_at, j.ended_at,
  extract(epoch FROM now() - j.heartbeat_at)::float8 AS heartbeat_age_s,
  (SELECT count(*)::int FROM assignment a WHERE a.worker_job = j.id AND ${IS_RUNNING}) AS running`;

function workers(): Conditions {
  return new Conditions().equals("j.kind", "worker");
}

/** The most that are listed: the largest number of slots. */
const MOST = 10_000;

const ASSIGNMENTS = statement(
  "worker-assignments",
  `SELECT a.id, a.kind, a.executor, a.queue, a.claimed_at, a.content->'run'->>'dagId' AS dag_id,
     a.content->'run'->>'runId' AS run_id, a.task_id, a.map_index, (a.content->>'tryNumber')::int AS try_number,
     a.cancel IS NOT NULL AS is_stopping
   FROM assignment a WHERE a.worker_job = $1 AND ${IS_RUNNING} ORDER BY a.claimed_at, a.id LIMIT ${MOST}`,
);

/** What a worker is running, the oldest first. */
export function workerAssignments(connection: Connection, id: number): Promise<WorkerAssignment[]> {
  return connection.rows(ASSIGNMENTS, [id]);
}

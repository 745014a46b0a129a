/** How much work is active, for /metrics. Each query starts from an index without history, and stops at a limit. */
import { UNFINISHED } from "../../model/run/states.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Rows that one query reads at most: beyond it, counts are lower bounds. */
const MOST_COUNTED = 100_000;
/** Queued runs that are read to find the oldest one of a DAG that is not paused. */
const MOST_QUEUED = 10_000;

export interface StateCount {
  readonly state: string;
  readonly count: number;
}

const RUNS = statement(
  "metrics-active-runs",
  `SELECT 'queued' AS state, count(*)::int AS count FROM (SELECT FROM dag_run WHERE state = 'queued' LIMIT ${MOST_COUNTED}) q
   UNION ALL
   SELECT 'running', count(*)::int FROM (SELECT FROM dag_run WHERE state = 'running' LIMIT ${MOST_COUNTED}) r`,
);

export function activeRuns(connection: Connection): Promise<StateCount[]> {
  return connection.rows(RUNS);
}

/** The inner limit keeps PostgreSQL from hashing all instances of the history. */
const INSTANCES = statement(
  "metrics-active-instances",
  `SELECT s.state, count(t.state)::int AS count FROM unnest($1::text[]) AS s(state) LEFT JOIN (
     SELECT i.state FROM (SELECT id FROM dag_run WHERE state = 'running' LIMIT ${MOST_COUNTED}) r CROSS JOIN LATERAL (
       SELECT state FROM task_instance WHERE dag_run_id = r.id LIMIT ${MOST_COUNTED}) i
     LIMIT ${MOST_COUNTED}
   ) t ON t.state = s.state GROUP BY s.state ORDER BY s.state`,
);

/** Unfinished instances of running runs. */
export function activeInstances(connection: Connection): Promise<StateCount[]> {
  return connection.rows(INSTANCES, [[...UNFINISHED]]);
}

/** Seconds since something was due and has not happened; 0: nothing is late. */
export interface Delays {
  /** A run that the schedule of a DAG has not created yet. */
  readonly schedule: number;
  /** A queued run that has not started. */
  readonly start: number;
}

const DELAYS = statement(
  "metrics-delays",
  `SELECT
     coalesce((SELECT greatest(0, extract(epoch FROM now() - d.next_run_after))::float8 FROM dag d
       WHERE d.next_run_after IS NOT NULL AND NOT d.is_paused AND NOT d.is_stale ORDER BY d.next_run_after LIMIT 1), 0) AS schedule,
     coalesce((SELECT extract(epoch FROM now() - q.run_after)::float8 FROM (
         SELECT dag_id, run_after, id FROM dag_run
         WHERE state = 'queued' AND run_after <= now() ORDER BY run_after, id LIMIT ${MOST_QUEUED}) q
       JOIN dag d ON d.dag_id = q.dag_id WHERE NOT d.is_paused AND NOT d.is_stale
       ORDER BY q.run_after, q.id LIMIT 1), 0) AS start`,
);

export async function delays(connection: Connection): Promise<Delays> {
  return (await connection.one<Delays>(DELAYS))!;
}

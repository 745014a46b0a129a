/** The latest runs of a DAG, and what its tasks did in them. Index: dag_run_latest, then the primary key of task_instance. */
import type { RunState, TaskState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Instants and durations are milliseconds. */
export interface TrendRun {
  readonly id: number;
  readonly run_id: string;
  readonly state: RunState;
  readonly run_after: number;
  readonly logical_date: number | null;
  readonly version: number;
  /** From its due time to its start. */
  readonly queue: number | null;
  readonly duration: number | null;
}

const ms = (value: string) => `(extract(epoch FROM ${value}) * 1000)::int8`;

const RUNS = statement(
  "ui-trend-runs",
  `SELECT r.id, r.run_id, r.state, ${ms("r.run_after")} AS run_after, ${ms("r.logical_date")} AS logical_date, v.number AS version,
     ${ms("r.started_at - greatest(r.run_after, r.queued_at)")} AS queue, ${ms("r.ended_at - r.started_at")} AS duration
   FROM dag_run r JOIN dag_version v ON v.id = r.version_id
   WHERE r.dag_id = $1 ORDER BY r.run_after DESC, r.id DESC LIMIT $2`,
);

/** The newest first. */
export function latestRuns(connection: Connection, dagId: string, count: number): Promise<TrendRun[]> {
  return connection.rows<TrendRun>(RUNS, [dagId, count]);
}

/** A task in a run; of a mapped task, its first instances together. */
export interface TaskOutcome {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly states: readonly TaskState[];
  readonly tries: number;
  /** Of the last try; of a mapped task, from the first start to the last end. */
  readonly duration: number | null;
}

/** Further instances of a mapped task are not read. */
const MOST_INSTANCES = 100;

/** The limit keeps PostgreSQL from reading whole runs: one probe per run and task. */
const OUTCOMES = statement(
  "ui-task-outcomes",
  `SELECT r.id AS dag_run_id, k.task_id, array_agg(DISTINCT t.state) AS states, max(t.try_number) AS tries,
     ${ms("max(t.ended_at) - min(t.started_at)")} AS duration
   FROM unnest($1::int8[]) AS r(id) CROSS JOIN unnest($2::text[]) AS k(task_id) CROSS JOIN LATERAL (
     SELECT x.* FROM task_instance x
     WHERE x.dag_run_id = r.id AND x.task_id = k.task_id AND x.map_index BETWEEN -1 AND ${MOST_INSTANCES - 1}
     LIMIT ${MOST_INSTANCES + 1}) t
   GROUP BY r.id, k.task_id`,
);

export function readTaskOutcomes(
  connection: Connection,
  runIds: readonly number[],
  taskIds: readonly string[],
): Promise<TaskOutcome[]> {
  return connection.rows<TaskOutcome>(OUTCOMES, [runIds, taskIds]);
}

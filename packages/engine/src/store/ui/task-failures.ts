/** The failures of a task in the runs of its DAG up to one of them. One probe per run: the cost does not grow with history. */
import type { TaskState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface TaskFailures {
  readonly run_id: string;
  readonly run_after: number;
  /** Of the run. */
  readonly version: number;
  /** Empty: the task has no instance in the run. */
  readonly states: readonly TaskState[];
  /** Of failed instances. */
  readonly failures: readonly TaskFailure[];
  /** Of failed tries that were followed by others. */
  readonly earlier_failures: readonly TaskFailure[];
}

export interface TaskFailure {
  readonly reason: string;
  /** That the try ran with. */
  readonly version: number;
}

/** Of a mapped task, its first instances count. */
const MOST_INSTANCES = 100;
const MOST_ATTEMPTS = 50;
/** What a fingerprint reads of a reason, and more. */
const REASON = 2_000;

function failure(row: string): string {
  return `jsonb_build_object('reason', left(${row}.reason, ${REASON}), 'version', coalesce(
    (SELECT o.number FROM attempt_version m JOIN dag_version o ON o.id = m.version_id WHERE m.attempt = ${row}.attempt), v.number))`;
}

const FAILURES = statement(
  "ui-task-failures",
  `SELECT r.run_id, (extract(epoch FROM r.run_after) * 1000)::int8 AS run_after, v.number AS version,
     coalesce(i.states, '{}') AS states, coalesce(i.failures, '[]') AS failures, coalesce(a.failures, '[]') AS earlier_failures
   FROM (SELECT x.* FROM dag_run x WHERE x.dag_id = $1
           AND (x.run_after, x.id) <= (SELECT y.run_after, y.id FROM dag_run y WHERE y.id = $2)
         ORDER BY x.run_after DESC, x.id DESC LIMIT $4) r
     JOIN dag_version v ON v.id = r.version_id
     CROSS JOIN LATERAL (
       SELECT array_agg(DISTINCT t.state) AS states,
         jsonb_agg(DISTINCT ${failure("t")}) FILTER (WHERE t.state = 'failed' AND t.reason IS NOT NULL) AS failures
       FROM (SELECT x.state, x.reason, x.attempt FROM task_instance x
             WHERE x.dag_run_id = r.id AND x.task_id = $3 AND x.map_index BETWEEN -1 AND ${MOST_INSTANCES - 1}
             LIMIT ${MOST_INSTANCES + 1}) t) i
     CROSS JOIN LATERAL (
       SELECT jsonb_agg(DISTINCT ${failure("t")}) AS failures
       FROM (SELECT x.reason, x.attempt FROM task_attempt x
             WHERE x.dag_run_id = r.id AND x.task_id = $3 AND x.map_index BETWEEN -1 AND ${MOST_INSTANCES - 1}
               AND x.state = 'failed' AND x.reason IS NOT NULL
             LIMIT ${MOST_ATTEMPTS}) t) a
   ORDER BY r.run_after, r.id`,
);

/** @param runs How many, with this one as the last. The oldest first. */
export function readTaskFailures(
  connection: Connection,
  of: { readonly dagId: string; readonly runId: number; readonly taskId: string; readonly runs: number },
): Promise<TaskFailures[]> {
  return connection.rows<TaskFailures>(FAILURES, [of.dagId, of.runId, of.taskId, of.runs]);
}

export interface FailedTry {
  readonly try_number: number;
  /** null: the try has not failed. */
  readonly reason: string | null;
}

/** The current try counts if no try follows its failure. */
const TRY = statement(
  "ui-failed-try",
  `SELECT try_number, reason FROM (
     SELECT t.try_number, CASE WHEN t.state = 'failed' THEN left(t.reason, ${REASON}) END AS reason, 'infinity'::timestamptz AS ended_at
     FROM task_instance t WHERE t.dag_run_id = $1 AND t.task_id = $2 AND t.map_index = $3
       AND ($4::int IS NULL OR t.try_number = $4)
     UNION ALL
     SELECT x.try_number, left(x.reason, ${REASON}), x.ended_at FROM task_attempt x
     WHERE x.dag_run_id = $1 AND x.task_id = $2 AND x.map_index = $3 AND x.state = 'failed' AND ($4::int IS NULL OR x.try_number = $4)
   ) tries ORDER BY reason IS NULL, try_number DESC, ended_at DESC LIMIT 1`,
);

/** @param tryNumber null: the last that has failed. undefined: there is no such try. */
export function findFailedTry(
  connection: Connection,
  of: {
    readonly runId: number;
    readonly taskId: string;
    readonly mapIndex: number;
    readonly tryNumber: number | null;
  },
): Promise<FailedTry | undefined> {
  return connection.one<FailedTry>(TRY, [of.runId, of.taskId, of.mapIndex, of.tryNumber]);
}

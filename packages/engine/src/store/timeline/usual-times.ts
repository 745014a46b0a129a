/**
 * How long a DAG and its tasks usually take: the median and the slow end of its last successful runs. The number of rows read
 * is bounded: of a large DAG, fewer runs count. Index: dag_run_succeeded.
 */
import type { UsualTime } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface UsualTimes {
  /** How many runs count. */
  readonly runs: number;
  /** From the start of a run to its end; null: none has succeeded. */
  readonly run: UsualTime | null;
  /** By task; of a mapped task from the first start to the last end. Usually skipped tasks take no time. */
  readonly tasks: ReadonlyMap<string, UsualTime>;
}

const MOST_RUNS = 20;
const MOST_ROWS = 20_000;

const ms = (interval: string) => `(extract(epoch FROM ${interval}) * 1000)::int8`;
const quantiles = (value: string) => `percentile_disc(0.5) WITHIN GROUP (ORDER BY ${value}) AS p50,
  percentile_disc(0.95) WITHIN GROUP (ORDER BY ${value}) AS p95`;
const LAST = `SELECT r.id, r.started_at, r.ended_at FROM dag_run r
  WHERE r.dag_id = $1 AND r.state = 'success' AND r.ended_at IS NOT NULL AND r.id <> $2 ORDER BY r.ended_at DESC LIMIT $3`;

const RUNS = statement(
  "usual-run-times",
  `SELECT count(*)::int AS runs, ${quantiles(ms("r.ended_at - r.started_at"))} FROM (${LAST}) r`,
);

/** Lateral: one probe per run. PostgreSQL would otherwise prefer to read all task instances. */
const TASKS = statement(
  "usual-task-times",
  `SELECT s.task_id, ${quantiles("s.took")} FROM (${LAST}) r CROSS JOIN LATERAL (
     SELECT t.task_id,
       CASE WHEN bool_or(t.state = 'success') THEN ${ms("max(t.ended_at) - min(t.started_at)")} ELSE 0 END AS took
     FROM task_instance t WHERE t.dag_run_id = r.id AND t.state IN ('success', 'skipped') GROUP BY t.task_id) s
   WHERE s.took IS NOT NULL GROUP BY s.task_id`,
);

/** @param of The run that is not counted, and the number of its task instances. */
export async function readUsualTimes(
  connection: Connection,
  dagId: string,
  of: { readonly runId: number; readonly instances: number },
): Promise<UsualTimes> {
  const runs = Math.min(MOST_RUNS, Math.max(1, Math.floor(MOST_ROWS / Math.max(1, of.instances))));
  const [run, tasks] = await Promise.all([
    connection.one<{ runs: number; p50: number | null; p95: number | null }>(RUNS, [dagId, of.runId, runs]),
    connection.rows<UsualTime & { readonly task_id: string }>(TASKS, [dagId, of.runId, runs]),
  ]);
  const { p50 = null, p95 = null } = run ?? {};
  return {
    runs: run?.runs ?? 0,
    run: p50 === null || p95 === null ? null : { p50, p95 },
    tasks: new Map(tasks.map(({ task_id, ...time }) => [task_id, time])),
  };
}

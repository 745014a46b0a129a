/** The executors of the live schedulers, the depth of their queues, and the workers that serve them. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { ExecutorFacts } from "../run/run-hand-over.ts";

/** An executor of one scheduler. */
export interface SchedulerExecutor extends ExecutorFacts {
  readonly job_id: number;
  readonly hostname: string;
  readonly is_default: boolean;
}

export interface QueueDepth {
  readonly executor: string;
  readonly queue: string;
  /** Assignments that no worker has claimed. */
  readonly waiting: number;
  readonly running: number;
  readonly oldest_wait_seconds: number;
}

/** The live workers of one queue that start assignments. */
export interface QueueWorkers {
  readonly queue: string;
  readonly workers: number;
  /** Of these workers, which may serve other queues, too. */
  readonly slots: number;
  readonly free_slots: number;
}

/** A queue with waiting assignments that no live worker serves. */
interface UnservedQueue {
  readonly executor: string;
  readonly queue: string;
  readonly tasks: number;
}

const ALIVE = "j.state = 'running' AND j.lease_until > now()";

const OF_SCHEDULERS = statement(
  "executors-of-schedulers",
  `SELECT j.id AS job_id, j.hostname, x.name, x.type, x.slots, x.active, x.problem, x.ordinality = 1 AS is_default
   FROM job j CROSS JOIN LATERAL ROWS FROM (
     json_to_recordset(j.facts->'executors') AS (name text, type text, slots integer, active integer, problem text)
   ) WITH ORDINALITY AS x
   WHERE j.kind = 'scheduler' AND ${ALIVE} AND json_typeof(j.facts->'executors') = 'array'
   ORDER BY j.id, x.ordinality`,
);

/** The default first. A scheduler that drains has none. */
export function schedulerExecutors(connection: Connection): Promise<SchedulerExecutor[]> {
  return connection.rows(OF_SCHEDULERS);
}

const DEPTHS = statement(
  "executors-queue-depths",
  "SELECT executor, queue, waiting, running, oldest_wait_seconds FROM queue_depth ORDER BY executor, queue",
);

export function queueDepths(connection: Connection): Promise<QueueDepth[]> {
  return connection.rows(DEPTHS);
}

const WORKERS = statement(
  "executors-queue-workers",
  `SELECT q.queue, count(*)::int AS workers, sum(j.slots)::int AS slots,
     sum(greatest(0, j.slots - (SELECT count(*) FROM assignment a WHERE a.worker_job = j.id)))::int AS free_slots
   FROM job j CROSS JOIN LATERAL unnest(j.queues) AS q(queue)
   WHERE j.kind = 'worker' AND ${ALIVE} AND NOT j.is_draining GROUP BY q.queue ORDER BY q.queue`,
);

export function queueWorkers(connection: Connection): Promise<QueueWorkers[]> {
  return connection.rows(WORKERS);
}

/** Limits the count: the health check is called often, and without a token. */
const MAX_COUNTED = 1_000;

/** One index step per queue, however many assignments wait in each. */
const UNSERVED = statement(
  "executors-unserved-queues",
  `WITH RECURSIVE queues(executor, queue) AS (
     (SELECT a.executor, a.queue FROM assignment a WHERE a.worker_job IS NULL ORDER BY a.executor, a.queue LIMIT 1)
     UNION ALL
     SELECT n.executor, n.queue FROM queues q CROSS JOIN LATERAL (
       SELECT a.executor, a.queue FROM assignment a
       WHERE a.worker_job IS NULL AND (a.executor, a.queue) > (q.executor, q.queue)
       ORDER BY a.executor, a.queue LIMIT 1) AS n
   )
   SELECT q.executor, q.queue, (SELECT count(*)::int FROM (
       SELECT FROM assignment a WHERE a.worker_job IS NULL AND a.executor = q.executor AND a.queue = q.queue LIMIT ${MAX_COUNTED}) AS w) AS tasks
   FROM queues q
   WHERE q.executor = ANY($1)
     AND NOT EXISTS (SELECT FROM job j
                     WHERE j.kind = 'worker' AND ${ALIVE} AND NOT j.is_draining AND q.queue = ANY(j.queues))
   ORDER BY q.executor, q.queue LIMIT $2`,
);

/** @param executors Those whose attempts wait for workers. */
function unservedQueues(
  connection: Connection,
  executors: readonly string[],
  limit: number,
): Promise<UnservedQueue[]> {
  return executors.length === 0 ? Promise.resolve([]) : connection.rows(UNSERVED, [executors, limit]);
}

export interface ExecutorHealth {
  readonly unserved: readonly UnservedQueue[];
  /** Executors with which a live scheduler cannot start attempts. */
  readonly failing: readonly string[];
}

export async function executorHealth(connection: Connection, limit: number): Promise<ExecutorHealth> {
  const executors = await schedulerExecutors(connection);
  const names = (of: (each: SchedulerExecutor) => boolean) => [
    ...new Set(executors.filter(of).map(({ name }) => name)),
  ];
  return {
    unserved: await unservedQueues(
      connection,
      names(({ type }) => type === "queue"),
      limit,
    ),
    failing: names(({ problem }) => problem !== null),
  };
}

/** Where an attempt of a remote executor waits or runs. */
export interface AttemptPlace {
  readonly executor: string;
  readonly queue: string;
  readonly waits_since: Date;
  /** Waiting assignments of the same queue that come first. */
  readonly ahead: number;
  /** null: no worker has claimed it. */
  readonly worker_job: number | null;
  readonly worker: string | null;
  readonly hostname: string | null;
}

const PLACE = statement(
  "executors-attempt-place",
  `SELECT a.executor, a.queue, a.created_at AS waits_since, a.worker_job, j.name AS worker, j.hostname,
     (SELECT count(*)::int FROM assignment o
      WHERE o.worker_job IS NULL AND o.executor = a.executor AND o.queue = a.queue AND o.id <> a.id
        AND (o.priority > a.priority OR o.priority = a.priority AND o.created_at < a.created_at)) AS ahead
   FROM assignment a LEFT JOIN job j ON j.id = a.worker_job
   JOIN task_instance t ON t.attempt = a.id AND t.dag_run_id = a.dag_run_id AND t.task_id = a.task_id AND t.map_index = a.map_index
   WHERE a.dag_run_id = $1 AND a.task_id = $2 AND a.map_index = $3`,
);

/** undefined: it has no assignment, because its executor is local, or it is not submitted yet. */
export function attemptPlace(
  connection: Connection,
  {
    dag_run_id,
    map_index,
    task_id,
  }: { readonly dag_run_id: number; readonly task_id: string; readonly map_index: number },
): Promise<AttemptPlace | undefined> {
  return connection.one(PLACE, [dag_run_id, task_id, map_index]);
}

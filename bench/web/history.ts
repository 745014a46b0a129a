/** Inserts runs as they would be after a while, and changes running ones as their owner does. */
import { WakeUps } from "../../packages/engine/src/job/wake-up.ts";
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";

/** A driver owns its runs like a scheduler: no scheduler claims these. */
const OWNER = adhoc(
  `INSERT INTO job (kind, hostname, pid, version, lease_until)
   VALUES ('driver', 'bench', 1, 'bench', now() + interval '1 day') RETURNING id`,
);

const RUNS = adhoc(
  `INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, run_after, version_id, triggered_by, started_at, ended_at, owner_job)
   SELECT d.dag_id, 'r' || n, 'scheduled',
     CASE WHEN n > $2::int - $3::int THEN 'running' WHEN n % 7 = 0 THEN 'failed' ELSE 'success' END,
     at, at, d.version_id, 'timetable', at, CASE WHEN n > $2 - $3 THEN NULL ELSE at + interval '9 minutes' END,
     CASE WHEN n > $2 - $3 THEN $4::bigint END
   FROM dag d CROSS JOIN generate_series(1, $2) AS n
   CROSS JOIN LATERAL (SELECT now() - ($2 - n + 1) * interval '10 minutes' AS at) AS t
   WHERE d.dag_id = $1`,
);

const INSTANCES = adhoc(
  `INSERT INTO task_instance (dag_run_id, task_id, state, try_number, attempt, scheduled_at, queued_at, started_at, ended_at,
     pool, pool_slots, queue, priority_weight, operator)
   SELECT r.id, t.value->>'taskId',
     CASE WHEN r.state = 'running' AND n > 20 THEN 'pending' WHEN (n * 7 + r.id) % 83 = 0 AND r.state = 'failed' THEN 'failed'
       WHEN (n + r.id) % 41 = 0 THEN 'skipped' ELSE 'success' END,
     1 + ((n + r.id) % 29 = 0)::int, gen_random_uuid(), at, at, at + interval '1 second', at + interval '9 seconds',
     'default_pool', 1, 'default', 1, 'task'
   FROM dag_run r JOIN dag_version v ON v.id = r.version_id
   CROSS JOIN LATERAL jsonb_array_elements(v.manifest->'tasks') WITH ORDINALITY AS t(value, n)
   CROSS JOIN LATERAL (SELECT r.started_at + t.n * interval '1 second' AS at) AS u
   WHERE r.dag_id = $1`,
);

/** Runs of a DAG with all of its tasks: "r1" is the oldest, and the last `running` ones are running. */
export async function addRuns(
  database: Database,
  dagId: string,
  { runs, running = 0 }: { readonly runs: number; readonly running?: number },
): Promise<void> {
  const owner = running > 0 ? (await database.one<{ id: number }>(OWNER))?.id : null;
  await database.rows(RUNS, [dagId, runs, running, owner]);
  await database.rows(INSTANCES, [dagId]);
  for (const table of ["dag_run", "task_instance"]) await database.rows(adhoc(`VACUUM (ANALYZE) ${table}`));
}

/** Earlier tries of each task of a run, each with its own time. */
export async function addAttempts(database: Database, dagId: string, tries: number): Promise<void> {
  await database.rows(
    adhoc(
      `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, scheduled_at, queued_at, started_at, ended_at)
       SELECT gen_random_uuid(), t.dag_run_id, t.task_id, -1, n, 'failed', at, at, at + interval '100 ms', at + interval '900 ms'
       FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id CROSS JOIN generate_series(1, $2) AS n
       CROSS JOIN LATERAL (SELECT t.scheduled_at - ($2 + 1 - n) * interval '1 second' AS at) AS u
       WHERE r.dag_id = $1`,
    ),
    [dagId, tries],
  );
  await database.rows(
    adhoc(
      "UPDATE task_instance t SET try_number = $2 FROM dag_run r WHERE r.id = t.dag_run_id AND r.dag_id = $1",
    ),
    [dagId, tries + 1],
  );
}

/** The states and their signals in one statement, as the owner of a run writes them. */
const MOVE = adhoc(
  `WITH moved AS (
     UPDATE task_instance t SET state = $3, started_at = coalesce(t.started_at, now()),
       ended_at = CASE WHEN $3 = 'success' THEN now() END
     FROM dag_run r, (SELECT i.task_id FROM task_instance i JOIN dag_run o ON o.id = i.dag_run_id
       WHERE o.dag_id = $1 AND o.run_id = $2 ORDER BY i.task_id OFFSET $4 LIMIT $5) chosen
     WHERE r.dag_id = $1 AND r.run_id = $2 AND t.dag_run_id = r.id AND t.task_id = chosen.task_id
     RETURNING t.task_id, t.try_number)
   INSERT INTO signal (namespace, key, value, sender)
   SELECT 'task', $1 || '/' || $2 || '/' || task_id, json_build_object('state', $3, 'mapIndex', -1, 'tryNumber', try_number), 'bench'
   FROM moved`,
);

export interface Move {
  readonly dagId: string;
  readonly runId: string;
  readonly state: "running" | "success";
  /** Of the tasks, by name. */
  readonly from: number;
  readonly count: number;
}

export class Changes {
  readonly #database: Database;
  readonly #wakeUps: WakeUps;

  constructor(database: Database) {
    this.#database = database;
    this.#wakeUps = new WakeUps(database);
  }

  async move({ count, dagId, from, runId, state }: Move): Promise<void> {
    await this.#database.rows(MOVE, [dagId, runId, state, from, count]);
    this.#wakeUps.send("states");
  }

  close(): Promise<void> {
    return this.#wakeUps.close();
  }
}

/** Current states of runs and tasks for the live stream: one round trip, whose statements find rows by key. */
import type { RunState, TaskState } from "../../model/index.ts";
import { call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface RunName {
  readonly dag_id: string;
  readonly run_id: string;
}

export interface LiveRunRow extends RunName {
  /** null: there is no such run, any more. */
  readonly state: RunState | null;
  readonly run_type: string | null;
  readonly run_after: Date | null;
  readonly logical_date: Date | null;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  /** The run that started it. */
  readonly parent_dag_id: string | null;
  readonly parent_run_id: string | null;
}

export interface TaskName extends RunName {
  readonly task_id: string;
  readonly map_index: number;
}

export interface LiveTaskRow extends TaskName {
  /** null: there is no such instance, any more. */
  readonly state: TaskState | null;
  readonly try_number: number;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
}

/** Index: dag_run_dag_id_run_id_key. */
const RUNS = statement(
  "ui-live-runs",
  `SELECT k.dag_id, k.run_id, r.state, r.run_type, r.run_after, r.logical_date, r.started_at, r.ended_at,
     p.dag_id AS parent_dag_id, p.run_id AS parent_run_id
   FROM unnest($1::text[], $2::text[]) AS k(dag_id, run_id)
   LEFT JOIN dag_run r ON r.dag_id = k.dag_id AND r.run_id = k.run_id
   LEFT JOIN dag_run p ON p.id = r.parent_run_id`,
);

const TASK = "t.state, coalesce(t.try_number, 0) AS try_number, t.started_at, t.ended_at";

/** Index: task_instance_pkey. */
const TASKS = statement(
  "ui-live-tasks",
  `SELECT k.dag_id, k.run_id, k.task_id, k.map_index, ${TASK}
   FROM unnest($1::text[], $2::text[], $3::text[], $4::int[]) AS k(dag_id, run_id, task_id, map_index)
   LEFT JOIN dag_run r ON r.dag_id = k.dag_id AND r.run_id = k.run_id
   LEFT JOIN task_instance t ON t.dag_run_id = r.id AND t.task_id = k.task_id AND t.map_index = k.map_index`,
);

/** Tasks in the states of which the log has no signal: they are about to run. At most $3 of each run. */
const BEFORE_START = statement(
  "ui-live-before-start",
  `SELECT k.dag_id, k.run_id, t.task_id, t.map_index, ${TASK}
   FROM unnest($1::text[], $2::text[]) AS k(dag_id, run_id)
   JOIN dag_run r ON r.dag_id = k.dag_id AND r.run_id = k.run_id AND r.state IN ('queued', 'running')
   CROSS JOIN LATERAL (SELECT * FROM task_instance i
     WHERE i.dag_run_id = r.id AND i.state IN ('scheduled', 'queued', 'restarting') LIMIT $3) t`,
);

export interface LiveRunsQuery {
  readonly runs: readonly RunName[];
  readonly tasks: readonly TaskName[];
  /** Runs whose tasks that are about to run are wanted. */
  readonly beforeStart: readonly RunName[];
  /** Of each run. */
  readonly mostBeforeStart: number;
}

export async function readLiveRuns(
  db: Database,
  { beforeStart, mostBeforeStart, runs, tasks }: LiveRunsQuery,
): Promise<{
  readonly runs: readonly LiveRunRow[];
  readonly tasks: readonly LiveTaskRow[];
  readonly beforeStart: readonly LiveTaskRow[];
}> {
  const names = (rows: readonly RunName[]) =>
    [rows.map(({ dag_id }) => dag_id), rows.map(({ run_id }) => run_id)] as const;
  const [foundRuns, foundTasks, waiting] = await db.pipeline([
    call(RUNS, ...names(runs)),
    call(
      TASKS,
      ...names(tasks),
      tasks.map(({ task_id }) => task_id),
      tasks.map(({ map_index }) => map_index),
    ),
    call(BEFORE_START, ...names(beforeStart), mostBeforeStart),
  ]);
  return {
    runs: foundRuns as LiveRunRow[],
    tasks: foundTasks as LiveTaskRow[],
    beforeStart: waiting as LiveTaskRow[],
  };
}

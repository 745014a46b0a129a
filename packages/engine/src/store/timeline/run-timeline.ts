/**
 * What the instances of a run did when. The cost grows with the run, not with the history of its DAG; of a mapped task,
 * only some instances are read.
 */
import type { RunState, TaskState, TimedAttempt, TimedInstance, TimedWait } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Instants are milliseconds. */
export interface TimelineRun {
  readonly id: number;
  readonly version_id: number;
  readonly version: number;
  readonly run_id: string;
  readonly run_type: string;
  readonly state: RunState;
  readonly try_number: number;
  readonly logical_date: number | null;
  readonly run_after: number;
  readonly now: number;
  readonly queued: number;
  readonly started: number | null;
  readonly ended: number | null;
}

export interface TimelineInstance extends TimedInstance {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly label: string | null;
}

/** The instances of a mapped task that have one state. */
export interface TimelineMap {
  readonly taskId: string;
  readonly state: TaskState;
  readonly instances: number;
  readonly tries: number;
  /** When the first of them became ready, and the last ended. */
  readonly first: number | null;
  readonly last: number | null;
}

type OfInstance<T> = T & { readonly runId: number; readonly taskId: string; readonly mapIndex: number };

export interface RunTimes {
  readonly instances: readonly TimelineInstance[];
  readonly attempts: readonly OfInstance<TimedAttempt>[];
  readonly waits: readonly OfInstance<TimedWait>[];
}

/** Which instances of mapped tasks to read. */
export interface TimelineRange {
  /** Only this task. */
  readonly taskId?: string | undefined;
  /** The first and last map index; -1: also tasks that are not mapped. */
  readonly from: number;
  readonly to: number;
  /** Also these, of each mapped task. */
  readonly also: readonly number[];
}

/** Beyond this number, instances of mapped tasks are left out. */
const MOST_INSTANCES = 20_000;
/** Earlier attempts and waits of an instance are left out. */
const MOST_ATTEMPTS = 100;

/** Rounded down, as the engine reads its own times. */
const ms = (column: string) => `floor(extract(epoch FROM ${column}) * 1000)::int8`;

const RUN = statement(
  "timeline-run",
  `SELECT r.id, r.version_id, v.number AS version, r.run_id, r.run_type, r.state, r.try_number, ${ms("now()")} AS now,
     ${ms("r.logical_date")} AS logical_date, ${ms("r.run_after")} AS run_after, ${ms("r.queued_at")} AS queued,
     ${ms("r.started_at")} AS started, ${ms("r.ended_at")} AS ended
   FROM dag_run r JOIN dag_version v ON v.id = r.version_id WHERE r.dag_id = $1 AND r.run_id = $2`,
);

export function findTimelineRun(
  connection: Connection,
  dagId: string,
  runId: string,
): Promise<TimelineRun | undefined> {
  return connection.one<TimelineRun>(RUN, [dagId, runId]);
}

/** The run before another that has ended; of runs with the same time, by id. Index: dag_run_latest. */
const PREVIOUS = statement(
  "timeline-previous-run",
  `SELECT p.run_id FROM dag_run r JOIN LATERAL (
     SELECT x.run_id FROM dag_run x
     WHERE x.dag_id = r.dag_id AND (x.run_after, x.id) < (r.run_after, r.id) AND x.state IN ('success', 'failed')
     ORDER BY x.run_after DESC, x.id DESC LIMIT 1) p ON true
   WHERE r.id = $1`,
);

export async function previousRunId(connection: Connection, run: TimelineRun): Promise<string | null> {
  return (await connection.one<{ run_id: string }>(PREVIOUS, [run.id]))?.run_id ?? null;
}

/** Only of runs with an expanded map; the rows of others are not read. */
const MAPS = statement(
  "timeline-maps",
  `SELECT t.task_id AS "taskId", t.state, count(*)::int AS instances, max(t.try_number) AS tries,
     ${ms("min(coalesce(t.scheduled_at, t.started_at))")} AS first, ${ms("max(t.ended_at)")} AS last
   FROM task_instance t WHERE t.dag_run_id = $1 AND t.map_index >= 0
     AND EXISTS (SELECT FROM map_expansion m WHERE m.dag_run_id = $1)
   GROUP BY t.task_id, t.state ORDER BY t.task_id, t.state`,
);

/** Of each mapped task, the instance that ended last: what came after it waited for it. */
const LAST = statement(
  "timeline-last-of-maps",
  `SELECT DISTINCT (SELECT min(t.map_index) FROM task_instance t
     WHERE t.dag_run_id = $1 AND t.task_id = m.task_id AND t.map_index >= 0 AND t.ended_at = m.last) AS map_index
   FROM (SELECT t.task_id, max(t.ended_at) AS last FROM task_instance t
     WHERE t.dag_run_id = $1 AND t.map_index >= 0 AND t.attempt IS NOT NULL
     GROUP BY t.task_id HAVING count(*) > $2) m`,
);

export async function readTimelineMaps(
  connection: Connection,
  run: TimelineRun,
  limit: number,
): Promise<{ readonly maps: readonly TimelineMap[]; readonly last: readonly number[] }> {
  const maps = await connection.rows<TimelineMap>(MAPS, [run.id]);
  const sizes = new Map<string, number>();
  for (const { instances, taskId } of maps) sizes.set(taskId, (sizes.get(taskId) ?? 0) + instances);
  // All of them are read.
  if ([...sizes.values()].every((size) => size <= limit)) return { maps, last: [] };
  const rows = await connection.rows<{ map_index: number | null }>(LAST, [run.id, limit]);
  return { maps, last: rows.flatMap(({ map_index }) => map_index ?? []) };
}

/** Without the stand-ins for future instances, which only wait. A text of its own for one task: it has an index for that. */
const chosen = (isOfTask: boolean) => `t.dag_run_id = ANY($1::int8[])${isOfTask ? " AND t.task_id = $5" : ""}
  AND (t.map_index BETWEEN $2 AND $3 OR t.map_index = ANY($4::int[]))`;
const ofInstance = (row: string) =>
  `${row}.dag_run_id AS "runId", ${row}.task_id AS "taskId", ${row}.map_index AS "mapIndex"`;
const times = (
  row: string,
) => `${ms(`${row}.scheduled_at`)} AS "scheduledAt", ${ms(`${row}.queued_at`)} AS "queuedAt",
  ${ms(`${row}.ended_at`)} AS "endedAt", ${ms(`${row}.retry_at`)} AS "retryAt"`;

const instances = (isOfTask: boolean) =>
  `SELECT ${ofInstance("t")}, t.state, t.try_number AS "tryNumber", t.attempt, ${times("t")},
     ${ms("coalesce(t.attempt_started_at, t.started_at)")} AS "startedAt", l.label
   FROM task_instance t LEFT JOIN map_label l USING (dag_run_id, task_id, map_index) WHERE ${chosen(isOfTask)}
   ORDER BY t.map_index <> -1, t.map_index, t.task_id LIMIT ${MOST_INSTANCES}`;

/** The latest of each instance: a streaming task, or a sensor that is called again and again, has thousands. */
const latest = (
  isOfTask: boolean,
  columns: string,
  of: { readonly table: string; readonly order: string },
) => `
  SELECT ${columns} FROM (
    SELECT t.*, row_number() OVER (PARTITION BY t.dag_run_id, t.task_id, t.map_index ORDER BY ${of.order}) AS place
    FROM ${of.table} t WHERE ${chosen(isOfTask)}) x WHERE x.place <= ${MOST_ATTEMPTS}`;

const attempts = (isOfTask: boolean) =>
  latest(
    isOfTask,
    `${ofInstance("x")}, x.attempt, x.try_number AS "tryNumber", x.state, ${times("x")}, ${ms("x.started_at")} AS "startedAt"`,
    { table: "task_attempt", order: "t.try_number DESC, t.ended_at DESC" },
  );

const waits = (isOfTask: boolean) =>
  latest(
    isOfTask,
    `${ofInstance("x")}, x.attempt, x.try_number AS "tryNumber", ${ms("x.scheduled_at")} AS "scheduledAt",
     ${ms("x.deferred_at")} AS "deferredAt", ${ms("x.ended_at")} AS "endedAt"`,
    { table: "deferral", order: "t.deferred_at DESC" },
  );

const OF_RUN = {
  instances: statement("timeline-instances", instances(false)),
  attempts: statement("timeline-attempts", attempts(false)),
  waits: statement("timeline-waits", waits(false)),
};
const OF_TASK = {
  instances: statement("timeline-task-instances", instances(true)),
  attempts: statement("timeline-task-attempts", attempts(true)),
  waits: statement("timeline-task-waits", waits(true)),
};

export async function readRunTimes(
  connection: Connection,
  runIds: readonly number[],
  { also, from, taskId, to }: TimelineRange,
): Promise<RunTimes> {
  const of = taskId === undefined ? OF_RUN : OF_TASK;
  const values = [runIds, from, to, also, ...(taskId === undefined ? [] : [taskId])];
  const [instances, attempts, waits] = await Promise.all([
    connection.rows<TimelineInstance>(of.instances, values),
    connection.rows<OfInstance<TimedAttempt>>(of.attempts, values),
    connection.rows<OfInstance<TimedWait>>(of.waits, values),
  ]);
  return { instances, attempts, waits };
}

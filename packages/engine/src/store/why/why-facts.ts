/** The facts behind "why is this task not running": cheap reads of the rows that the scheduler also uses. */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";

export interface StateCount {
  readonly task_id: string;
  readonly state: string;
  readonly count: number;
  /** The map index of the first of them. */
  readonly first: number;
}

/** The number of instances per state, for some tasks of one run. */
export function countStates(
  connection: Connection,
  dagRunId: number,
  taskIds: readonly string[],
): Promise<StateCount[]> {
  return connection.rows(
    adhoc(`SELECT task_id, state, count(*)::int8 AS count, min(map_index) AS first FROM task_instance
      WHERE dag_run_id = $1 AND task_id = ANY($2) GROUP BY task_id, state ORDER BY task_id, state`),
    [dagRunId, [...taskIds]],
  );
}

/** For one task of a run: the number of instances in each state, and the first expanded one. */
export function firstInStates(
  connection: Connection,
  dagRunId: number,
  taskId: string,
): Promise<{ readonly state: string; readonly count: number; readonly first: number }[]> {
  return connection.rows(
    adhoc(`SELECT state, count(*)::int8 AS count,
        coalesce(min(map_index) FILTER (WHERE map_index >= 0), max(map_index)) AS first
      FROM task_instance WHERE dag_run_id = $1 AND task_id = $2 GROUP BY state ORDER BY state`),
    [dagRunId, taskId],
  );
}

export interface Activity {
  /** Queued and running instances of the run; and those of the same task. */
  readonly in_run: number;
  readonly of_task: number;
}

export async function countActivity(
  connection: Connection,
  dagRunId: number,
  taskId: string,
): Promise<Activity> {
  const row = await connection.one<Activity>(
    adhoc(`SELECT count(*)::int8 AS in_run, count(*) FILTER (WHERE task_id = $2)::int8 AS of_task
      FROM task_instance WHERE dag_run_id = $1 AND state IN ('queued', 'running', 'restarting')`),
    [dagRunId, taskId],
  );
  return row!;
}

/** Running runs of the DAG, without those of backfills, which have limits of their own. */
export async function countRunningRuns(connection: Connection, dagId: string): Promise<number> {
  const row = await connection.one<{ count: number }>(
    adhoc(`SELECT count(*)::int8 AS count FROM dag_run
      WHERE dag_id = $1 AND state = 'running' AND backfill_id IS NULL`),
    [dagId],
  );
  return row!.count;
}

export interface SlotCount {
  readonly name: string;
  readonly slots: number;
  readonly occupied: number;
}

/** Pools by name, including internal limits. */
export function readSlots(connection: Connection, names: readonly string[]): Promise<SlotCount[]> {
  return connection.rows(adhoc("SELECT name, slots, occupied FROM pool WHERE name = ANY($1) ORDER BY name"), [
    [...names],
  ]);
}

interface WiderTask {
  readonly dag_id: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly pool_slots: number;
}

/** The best task in the same pool that precedes this one and does not fit now, although the pool is large enough. */
export function widerAhead(
  connection: Connection,
  { dag_run_id, pool, pool_slots, priority_weight }: WaitingTask,
): Promise<WiderTask | undefined> {
  return connection.one(
    adhoc(`SELECT r.dag_id, r.run_id, t.task_id, t.pool_slots
      FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id JOIN pool p ON p.name = t.pool
      JOIN dag_run own ON own.id = $1
      WHERE r.state = 'running' AND t.state = 'scheduled' AND t.pool = $2 AND t.pool_slots > $3
        AND p.slots >= t.pool_slots AND p.slots - p.occupied < t.pool_slots
        AND (-t.priority_weight, coalesce(r.logical_date, r.run_after)) < (-$4::int, coalesce(own.logical_date, own.run_after))
      ORDER BY t.priority_weight DESC, coalesce(r.logical_date, r.run_after) LIMIT 1`),
    [dag_run_id, pool, pool_slots, priority_weight],
  );
}

interface WaitingTask {
  readonly dag_run_id: number;
  readonly pool: string;
  readonly pool_slots: number;
  readonly priority_weight: number;
}

export interface BlockingRun {
  readonly id: number;
  readonly run_id: string;
}

/** The number of earlier runs to check. */
const PAST_RUNS = 1_000;

/**
 * The earlier runs that block these tasks of a run, latest first, by the rule of `store/plan/past.ts`: the tasks have
 * not succeeded there. An older run is included only if they have not started in the newer ones. Index: dag_run_logical_date.
 */
export function blockingRuns(
  connection: Connection,
  dagRunId: number,
  taskIds: readonly string[],
): Promise<BlockingRun[]> {
  return connection.rows(
    adhoc(`WITH RECURSIVE back AS (
        SELECT r.id, r.run_id, r.dag_id, r.logical_date, r.backfill_id, true AS is_waiting, 0 AS distance
        FROM dag_run r WHERE r.id = $1
        UNION ALL
        SELECT p.id, p.run_id, p.dag_id, p.logical_date, p.backfill_id, t.begun = 0, b.distance + 1
        FROM back b
        CROSS JOIN LATERAL (
          SELECT * FROM dag_run p WHERE p.dag_id = b.dag_id AND p.logical_date < b.logical_date
          ORDER BY p.logical_date DESC LIMIT 1) AS p
        CROSS JOIN LATERAL (
          SELECT count(*) FILTER (WHERE state NOT IN ('success', 'skipped')) AS open,
                 count(*) FILTER (WHERE state NOT IN ('success', 'skipped', 'pending')) AS begun
          FROM task_instance WHERE dag_run_id = p.id AND task_id = ANY($2)) AS t
        WHERE b.is_waiting AND b.distance < ${PAST_RUNS}
          AND (t.open > 0 OR (p.state = 'queued' AND NOT EXISTS (SELECT FROM task_instance WHERE dag_run_id = p.id)))
          AND NOT EXISTS (SELECT FROM backfill_date d
                          WHERE d.backfill_id = b.backfill_id AND d.ordinal = 0 AND d.dag_run_id = b.id)
      ) SELECT id, run_id FROM back WHERE distance > 0 ORDER BY distance`),
    [dagRunId, [...taskIds]],
  );
}

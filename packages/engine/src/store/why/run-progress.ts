/** Progress, owner and usage of one run, counted from its task instances and attempts. */
import { FINISHED, type TaskState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

interface RunLock {
  readonly job_id: number;
  readonly kind: string;
  readonly hostname: string;
  readonly pid: number;
  readonly generation: number;
  /** null: not recorded. */
  readonly since: Date | null;
}

interface SlotSeconds {
  /** Seconds with a running process. */
  readonly running: number;
  /** Seconds times pool slots, including the wait for an executor. */
  readonly occupied: number;
  /** Seconds in a deferral, without a process. */
  readonly deferred: number;
}

export interface RunProgress {
  /** null: no scheduler owns the run. */
  readonly lock: RunLock | null;
  readonly byState: Readonly<Partial<Record<TaskState, number>>>;
  readonly slotSeconds: SlotSeconds;
}

/**
 * An instance's current attempt is in `task_instance`, and moves to `task_attempt` when the next one starts. The process
 * of an attempt ended when it deferred, even if the wait then ended the task.
 */
const SLOT_SECONDS = statement(
  "run-slot-seconds",
  `WITH attempt AS (
     SELECT x.queued_at, x.started_at, x.ended_at, coalesce(t.pool_slots, 1) AS slots
     FROM task_attempt x LEFT JOIN task_instance t USING (dag_run_id, task_id, map_index)
     WHERE x.dag_run_id = $1
     UNION ALL
     SELECT t.queued_at, coalesce(t.attempt_started_at, t.started_at),
            coalesce(d.deferred_at, CASE WHEN t.state IN ('queued', 'running', 'restarting') THEN now() ELSE t.ended_at END),
            t.pool_slots
     FROM task_instance t LEFT JOIN deferral d ON d.attempt = t.attempt
     WHERE t.dag_run_id = $1 AND t.attempt IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM task_attempt x WHERE x.attempt = t.attempt)
   )
   SELECT coalesce(sum(extract(epoch FROM a.ended_at - a.started_at)), 0)::float8 AS running,
          coalesce(sum(a.slots * extract(epoch FROM a.ended_at - a.queued_at)), 0)::float8 AS occupied,
          (SELECT coalesce(sum(extract(epoch FROM coalesce(d.ended_at, now()) - d.deferred_at)), 0)::float8
           FROM deferral d WHERE d.dag_run_id = $1) AS deferred
   FROM attempt a`,
);

const COUNTS = statement(
  "run-state-counts",
  "SELECT state, count(*)::int AS n FROM task_instance WHERE dag_run_id = $1 GROUP BY state ORDER BY state",
);

const LOCK = statement(
  "run-lock",
  `SELECT j.id AS job_id, j.kind, j.hostname, j.pid, r.generation, r.owned_since AS since
   FROM dag_run r JOIN job j ON j.id = r.owner_job WHERE r.id = $1`,
);

export async function readRunProgress(connection: Connection, dagRunId: number): Promise<RunProgress> {
  const counts = await connection.rows<{ state: TaskState; n: number }>(COUNTS, [dagRunId]);
  const [lock] = await connection.rows<RunLock>(LOCK, [dagRunId]);
  const [slotSeconds] = await connection.rows<SlotSeconds>(SLOT_SECONDS, [dagRunId]);
  return {
    lock: lock ?? null,
    byState: Object.fromEntries(counts.map(({ state, n }) => [state, n])),
    slotSeconds: slotSeconds!,
  };
}

/** The number of ended instances, and of all. */
export function finishedOf(byState: RunProgress["byState"]): {
  readonly total: number;
  readonly finished: number;
} {
  const counts = Object.entries(byState) as [TaskState, number][];
  const sum = (of: readonly [TaskState, number][]) => of.reduce((total, [, n]) => total + n, 0);
  return { total: sum(counts), finished: sum(counts.filter(([state]) => FINISHED.has(state))) };
}

/** The full state of a run that does not end, for the message of a failed test. */

import { logOf, type Place, readLog } from "./component-process.ts";
import type { FaultInstallation } from "./installation.ts";

const QUESTIONS: Readonly<Record<string, string>> = {
  runs: `SELECT r.id, r.dag_id, r.run_id, r.state, r.owner_job, r.generation, j.state AS owner, j.pid, j.lease_until - now() AS lease
         FROM dag_run r LEFT JOIN job j ON j.id = r.owner_job WHERE r.state IN ('queued', 'running') ORDER BY r.id LIMIT 20`,
  tasks: `SELECT t.dag_run_id AS run, t.task_id AS task, t.state, t.try_number AS try, t.attempt, t.executor_job AS job, t.pool,
                 t.pool_slots AS slots, t.limit_key, t.retry_at, t.reason
          FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id
          WHERE r.state = 'running' AND t.state NOT IN ('pending', 'success', 'failed', 'skipped', 'upstream_failed') LIMIT 40`,
  pools: "SELECT name, slots, occupied FROM pool",
  jobs: "SELECT id, kind, pid, state, now() - heartbeat_at AS since FROM job WHERE state = 'running'",
  assignments:
    "SELECT id, dag_run_id AS run, task_id AS task, worker_job AS worker, cancel, now() - created_at AS age FROM assignment LIMIT 30",
  reports: "SELECT assignment_id, type, content FROM report LIMIT 20",
  triggers: `SELECT t.id, t.kind, t.args, t.owner_job, t.standby_job, t.wake_at - now() AS wakes_in, t.dag_id,
                    (SELECT count(*) FROM deferral d WHERE d.waits_on = t.id) AS waits
             FROM trigger t ORDER BY t.id LIMIT 30`,
  waits: `SELECT attempt, dag_run_id AS run, task_id AS task, trigger_id, waits_on, kind, name, method, now() - deferred_at AS since,
                 timeout_at - now() AS left, fired_at, outcome FROM deferral WHERE ended_at IS NULL ORDER BY deferred_at LIMIT 30`,
  locks: `SELECT l.pid, l.locktype, l.mode, l.granted, a.state, left(a.query, 120) AS query FROM pg_locks l
          JOIN pg_stat_activity a ON a.pid = l.pid WHERE a.datname = current_database() AND NOT l.granted`,
};

export async function stuckReport(
  installation: FaultInstallation,
  places: readonly Pick<Place, "home">[],
): Promise<string> {
  const parts: string[] = [];
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const rows = await installation.sql<object>(question);
    parts.push(`${name}:`, ...rows.map((row) => `  ${JSON.stringify(row)}`));
  }
  for (const place of places) {
    const tail = readLog(place).slice(-25);
    parts.push(`${logOf(place)}:`, ...tail.map((line) => `  ${JSON.stringify(line).slice(0, 400)}`));
  }
  return parts.join("\n");
}

/** What a run that does not end looks like from all sides: for the message of a failed test. */

import type { FaultInstallation } from "./installation.ts";
import { logOf, readLog, type SchedulerPlace } from "./scheduler-process.ts";

const QUESTIONS: Readonly<Record<string, string>> = {
  runs: `SELECT r.id, r.dag_id, r.run_id, r.state, r.owner_job, r.generation, j.state AS owner, j.pid, j.lease_until - now() AS lease
         FROM dag_run r LEFT JOIN job j ON j.id = r.owner_job WHERE r.state IN ('queued', 'running') ORDER BY r.id LIMIT 20`,
  tasks: `SELECT t.dag_run_id AS run, t.task_id AS task, t.state, t.try_number AS try, t.attempt, t.executor_job AS job, t.pool,
                 t.pool_slots AS slots, t.limit_key, t.retry_at, t.reason
          FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id
          WHERE r.state = 'running' AND t.state NOT IN ('none', 'success', 'failed', 'skipped', 'upstream_failed') LIMIT 40`,
  pools: "SELECT name, slots, occupied FROM pool",
  jobs: "SELECT id, pid, state, now() - heartbeat_at AS since FROM job WHERE state = 'running'",
  locks: `SELECT l.pid, l.locktype, l.mode, l.granted, a.state, left(a.query, 120) AS query FROM pg_locks l
          JOIN pg_stat_activity a ON a.pid = l.pid WHERE a.datname = current_database() AND NOT l.granted`,
};

export async function stuckReport(
  installation: FaultInstallation,
  places: readonly SchedulerPlace[],
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

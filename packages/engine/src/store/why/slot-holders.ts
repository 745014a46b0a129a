/** The slots of the executors of a scheduler, and the tasks that hold those of the local one. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { SlotFacts } from "../run/run-hand-over.ts";
import type { DrainFacts } from "../run/run-release.ts";

export interface SlotHolder {
  readonly dag_id: string;
  readonly task_id: string;
  readonly is_streaming: boolean;
  /** Queued and running instances. */
  readonly count: number;
}

export interface SlotJob {
  readonly hostname: string;
  /** Of the local executor; null: no limit. */
  readonly slots: number | null;
  /** Facts reported by the job itself. */
  readonly facts: Partial<DrainFacts & SlotFacts> | null;
}

const JOB = statement(
  "slot-holders-job",
  "SELECT hostname, slots, facts FROM job WHERE id = $1 AND state = 'running'",
);

/** Index: dag_run_owner. */
const HOLDERS = statement(
  "slot-holders",
  `SELECT r.dag_id, t.task_id, count(*)::int AS count,
          coalesce(bool_or(v.manifest @? format('$.tasks[*] ? (@.taskId == %s && @.lifetime == "streaming")',
                                                to_json(t.task_id))::jsonpath), false) AS is_streaming
   FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id JOIN dag_version v ON v.id = r.version_id
   WHERE r.owner_job = $1 AND t.state IN ('queued', 'running', 'restarting') AND coalesce(t.executor, $2) = 'local'
   GROUP BY r.dag_id, t.task_id ORDER BY count DESC, r.dag_id, t.task_id`,
);

/** undefined: no such job, or it has ended. */
export function readSlotJob(connection: Connection, job: number): Promise<SlotJob | undefined> {
  return connection.one(JOB, [job]);
}

/**
 * Sorted by number of instances, descending.
 * @param standard The executor of tasks that name none.
 */
export function readSlotHolders(
  connection: Connection,
  job: number,
  standard: string,
): Promise<SlotHolder[]> {
  return connection.rows(HOLDERS, [job, standard]);
}

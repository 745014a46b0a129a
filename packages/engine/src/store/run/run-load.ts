/** Loading a run: its task instances, the tasks that branches skipped, and outputs for the inputs of its tasks. */
import type { Json } from "@tradewind/sdk/manifest";
import { isTaskState, type LargeValue } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type StoredValue, withReferences } from "../output/output-objects.ts";

/** The part of a row that every model of the run needs. */
export function instanceFacts(row: LoadedInstance) {
  return {
    taskId: row.task_id,
    mapIndex: row.map_index,
    state: isTaskState(row.state) ? row.state : "pending",
    tryNumber: row.try_number,
    maxTries: row.max_tries,
    attempt: row.attempt,
  } as const;
}

export interface LoadedInstance {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly state: string;
  readonly try_number: number;
  readonly max_tries: number;
  readonly infra_losses: number;
  readonly attempt: string | null;
  readonly executor_job: number | null;
  readonly scheduled_at: Date | null;
  readonly queued_at: Date | null;
  readonly started_at: Date | null;
  readonly attempt_started_at: Date | null;
  readonly ended_at: Date | null;
  readonly retry_at: Date | null;
  readonly pid: number | null;
  readonly pool: string;
  readonly pool_slots: number;
  readonly limit_key: string | null;
  readonly resumed_attempt: string | null;
  readonly keeps_slot: boolean;
  /** The timeout of a deferred instance's wait. */
  readonly timeout_at: Date | null;
  readonly deferred_at: Date | null;
  readonly on_timeout: "fail" | "fatal" | "skip" | "resume" | null;
  readonly wait_method: string | null;
  readonly wait_kind: string | null;
  /** The arguments of its trigger; null if they are long. */
  readonly wait_args: Json;
}

const INSTANCES = statement(
  "load-instances",
  `SELECT t.dag_run_id, t.task_id, t.map_index, t.state, t.try_number, t.max_tries, t.infra_losses, t.attempt,
          t.executor_job, t.scheduled_at, t.queued_at, t.started_at, t.attempt_started_at, t.ended_at, t.retry_at, t.pid,
          t.pool, t.pool_slots, t.limit_key, t.resumed_attempt, t.keeps_slot, d.timeout_at, d.deferred_at, d.on_timeout,
          d.method AS wait_method, d.kind AS wait_kind,
          (SELECT g.args FROM trigger g WHERE g.id = d.waits_on AND length(g.args::text) <= 2000) AS wait_args
   FROM task_instance t LEFT JOIN deferral d ON d.attempt = t.attempt AND t.state = 'deferred'
   WHERE t.dag_run_id = ANY($1) ORDER BY t.dag_run_id, t.task_id, t.map_index`,
);

/** A branch's decision is stored beside its output, under a key that no task can write. */
export const SKIP_KEY = "tradewind.skip";
export const OUTPUT_KEY = "return_value";

const SKIPS = statement(
  "load-skips",
  `SELECT dag_run_id, task_id, map_index, value FROM xcom WHERE dag_run_id = ANY($1) AND key = '${SKIP_KEY}'`,
);

const OUTPUTS = statement(
  "load-outputs",
  `SELECT x.dag_run_id, x.task_id, x.map_index, x.value, x.object_id
   FROM xcom x JOIN (SELECT DISTINCT * FROM unnest($1::bigint[], $2::text[])) AS w(run, task)
     ON x.dag_run_id = w.run AND x.task_id = w.task
   WHERE x.key = '${OUTPUT_KEY}' ORDER BY x.dag_run_id, x.task_id, x.map_index`,
);

export interface LoadedOutput {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly value: Json | LargeValue;
}

export function loadInstances(db: Connection, runIds: readonly number[]): Promise<LoadedInstance[]> {
  return db.rows<LoadedInstance>(INSTANCES, [runIds]);
}

export function loadSkips(
  db: Connection,
  runIds: readonly number[],
): Promise<{ dag_run_id: number; task_id: string; map_index: number; value: string[] }[]> {
  return db.rows(SKIPS, [runIds]);
}

/** The outputs of the named tasks, all map indexes, in index order; references for large outputs. */
export async function loadOutputs(
  db: Connection,
  wanted: readonly { readonly runId: number; readonly taskId: string }[],
): Promise<LoadedOutput[]> {
  if (wanted.length === 0) return [];
  const keys = [wanted.map((w) => w.runId), wanted.map((w) => w.taskId)];
  return await withReferences(db, await db.rows<LoadedOutput & StoredValue>(OUTPUTS, keys));
}

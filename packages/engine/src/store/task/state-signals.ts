/**
 * What the engine itself tells on the signal log, as parts of the statements that do what is told: in the same
 * transaction, without a round trip of its own.
 *
 * None of these takes the lock of its key (signals.ts). Of a run, and of a task in it, one writer at a time holds the
 * run's row; a new run has no other. What is told of a run that was there comes in a statement after the one that locked
 * it, so that the log has it in the order in which it happened.
 */
import type { Instance } from "../../model/index.ts";
import { statement } from "../database/statement.ts";
import type { SignalWrite } from "./run-batch.ts";

/** Of rows with the columns of `dag_run`, in the state they have now. `sender` is SQL. */
export function tellRuns(rows: string, sender = "'engine'"): string {
  return `INSERT INTO signal (namespace, key, value, sender)
     SELECT 'run', r.dag_id || '/' || r.run_id, json_build_object('state', r.state), ${sender} FROM ${rows} AS r`;
}

/** Of rows with the columns of `task_instance`, as in the batches of an owner. */
export function tellTasks(rows: string): string {
  return `INSERT INTO signal (namespace, key, value, sender)
     SELECT 'task', r.dag_id || '/' || r.run_id || '/' || t.task_id,
            json_build_object('state', t.state, 'mapIndex', t.map_index, 'tryNumber', t.try_number), 'engine'
     FROM ${rows} AS t JOIN dag_run r ON r.id = t.dag_run_id`;
}

/** The same signal, for the batch of an owner. */
export function stateSignal(
  { dag_id: dagId, run_id: runId }: { readonly dag_id: string; readonly run_id: string },
  { mapIndex, node, state, tryNumber }: Instance,
): SignalWrite {
  return { namespace: "task", key: `${dagId}/${runId}/${node.id}`, value: { state, mapIndex, tryNumber } };
}

/** Of rows `dag_id`, `id` and `kind` of a schedule's trigger, and `run_id` of what came of it. `outcome` and `sender` are SQL. */
export function tellScheduleTriggers(rows: string, outcome: "event" | "failed", sender: string): string {
  return `INSERT INTO signal (namespace, key, value, sender)
     SELECT 'trigger', t.dag_id, json_build_object('trigger', t.id, 'kind', t.kind, 'outcome', '${outcome}',
                                                   'waits', 0, 'runId', t.run_id), ${sender}
     FROM ${rows} AS t`;
}

/**
 * Of these schedules' triggers: two replicas, or a trigger and the one that replaced it, tell of the same DAG. After the
 * triggers are locked, before anything is told.
 */
export const LOCK_SCHEDULE_KEYS = statement(
  "signal-lock-schedules",
  `SELECT tw_lock_signals(array_agg('trigger'::text), array_agg(t.dag_id))
   FROM (SELECT DISTINCT dag_id FROM trigger WHERE id = ANY($1::bigint[]) AND dag_id IS NOT NULL) AS t
   HAVING count(*) > 0`,
);

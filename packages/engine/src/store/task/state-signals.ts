/**
 * The engine's own signals about state changes, as parts of the statements that make the changes: in the same
 * transaction, without another round trip.
 *
 * None of them locks its signal key (signals.ts). One writer at a time holds the row of a run, which also covers its
 * tasks; a new run has no other writer. The signal of an existing run is inserted by a statement after the one that locked
 * the run, so that the log is in the order of the changes.
 */
import type { Instance } from "../../model/index.ts";
import { statement } from "../database/statement.ts";
import type { SignalWrite } from "./run-batch.ts";

/** For rows with the columns of `dag_run`, after the change. `sender` is SQL. */
export function publishRuns(rows: string, sender = "'engine'"): string {
  return `INSERT INTO signal (namespace, key, value, sender)
     SELECT 'run', r.dag_id || '/' || r.run_id, json_build_object('state', r.state), ${sender} FROM ${rows} AS r`;
}

/** For rows with the columns of `task_instance`, after the change. */
export function publishTasks(rows: string): string {
  return `INSERT INTO signal (namespace, key, value, sender)
     SELECT 'task', r.dag_id || '/' || r.run_id || '/' || t.task_id,
            json_build_object('state', t.state, 'mapIndex', t.map_index, 'tryNumber', t.try_number), 'engine'
     FROM ${rows} AS t JOIN dag_run r ON r.id = t.dag_run_id`;
}

/** The same signal, for the batch of an owner. An approval that begins to wait says so: a DAG may notify people. */
export function stateSignal(
  { dag_id: dagId, run_id: runId }: { readonly dag_id: string; readonly run_id: string },
  { mapIndex, node, state, tryNumber, wait }: Instance,
): SignalWrite {
  const isAsking = state === "deferred" && node.manifest.approval !== undefined;
  const approval = { waitsFor: wait?.what ?? null };
  const value = { state, mapIndex, tryNumber, ...(isAsking && { approval }) };
  return { namespace: "task", key: `${dagId}/${runId}/${node.id}`, value };
}

/** For rows with `dag_id`, `id` and `kind` of a schedule's trigger and the `run_id` of its run. `outcome` and `sender` are SQL. */
export function publishScheduleTriggers(rows: string, outcome: "event" | "failed", sender: string): string {
  return `INSERT INTO signal (namespace, key, value, sender)
     SELECT 'trigger', t.dag_id, json_build_object('trigger', t.id, 'kind', t.kind, 'outcome', '${outcome}',
                                                   'waits', 0, 'runId', t.run_id), ${sender}
     FROM ${rows} AS t`;
}

/**
 * Locks the signal keys of these schedules' triggers: two replicas, or a trigger and its replacement, send signals about
 * the same DAG. Runs after the triggers are locked and before a signal is inserted.
 */
export const LOCK_SCHEDULE_KEYS = statement(
  "signal-lock-schedules",
  `SELECT tw_lock_signals(array_agg('trigger'::text), array_agg(t.dag_id))
   FROM (SELECT DISTINCT dag_id FROM trigger WHERE id = ANY($1::bigint[]) AND dag_id IS NOT NULL) AS t
   HAVING count(*) > 0`,
);

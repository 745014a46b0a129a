/**
 * `onCancel` of waits that end without their event: one row of `callback` per wait, in the transaction that ends the
 * wait. The row belongs to no job; a scheduler adopts it like the callbacks of dead jobs (callbacks.ts).
 *
 * Concurrent fire and cancel: a wait ends once, because its end requires that it has not ended. If the run's owner
 * applied the event first, there is no row. If an edit or a timeout was first, there is one row, and the event is dropped
 * with the wait even if the trigger had fired: the task's code has not received it. Crash before the commit: no effect.
 * Crash after it: any scheduler adopts the row. The row does not reference the run, which may be deleted meanwhile.
 */

/** The run's facts for the callback of a wait. Times are texts. */
const RUN_FACTS = `json_build_object('dag_run_id', r.id, 'dag_id', r.dag_id, 'run_id', r.run_id, 'run_type', r.run_type,
       'logical_date', r.logical_date, 'interval_start', r.interval_start, 'interval_end', r.interval_end,
       'run_after', r.run_after, 'started_at', r.started_at, 'conf', r.conf, 'version_number', v.number)`;

const WAIT_FACTS = `json_build_object('cause', e.end_kind, 'mapIndex', e.map_index, 'name', e.name, 'kwargs', e.kwargs,
       'trigger', e.on_cancel->'trigger', 'inputs', e.on_cancel->'inputs')`;

/** Part of a statement with `ended`: updated rows of `deferral`, with `is_cancelled`. */
export const INSERT_CANCELS = `INSERT INTO callback (id, task_id, map_index, event, try_number, bundle_hash, wait, run)
     SELECT gen_random_uuid(), e.task_id, e.map_index, 'cancel', e.try_number, e.on_cancel->>'bundle', ${WAIT_FACTS},
            ${RUN_FACTS}
     FROM ended e JOIN dag_run r ON r.id = e.dag_run_id JOIN dag_version v ON v.id = r.version_id
     WHERE e.is_cancelled AND e.on_cancel IS NOT NULL`;

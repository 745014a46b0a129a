/**
 * State changes of task instances: one statement for a batch of any size. Each change names the state and the attempt
 * that it leaves. If one of its instances has moved on, the whole batch is rejected.
 *
 * A new column of task_instance that the scheduler writes is added to `SET`.
 */
import type { Change } from "../../model/index.ts";
import { type Columns, RowArrays } from "../database/row-arrays.ts";
import { type Call, call, statement } from "../database/statement.ts";

/** SQLSTATE: an instance is not in the state, or not on the attempt, that the decision was made for. */
export const STATE_MOVED = "TW003";

export interface InstanceMove extends Change {
  readonly runId: number;
}

const LEAVES: Columns<InstanceMove> = {
  dag_run_id: ["bigint", ({ runId }) => runId],
  task_id: ["text", ({ instance }) => instance.node.id],
  map_index: ["integer", ({ instance }) => instance.mapIndex],
  from_state: ["text", ({ from }) => from ?? "pending"],
  from_attempt: ["uuid", ({ fromAttempt }) => fromAttempt],
};

const SET: Columns<InstanceMove> = {
  state: ["text", ({ instance }) => instance.state],
  attempt: ["uuid", ({ instance }) => instance.attempt],
  try_number: ["integer", ({ instance }) => instance.tryNumber],
  max_tries: ["integer", ({ instance }) => instance.maxTries],
  infra_losses: ["integer", ({ instance }) => instance.infraLosses],
  scheduled_at: ["instant", ({ instance }) => instance.scheduledAt],
  queued_at: ["instant", ({ instance }) => instance.queuedAt],
  started_at: ["instant", ({ instance }) => instance.startedAt],
  attempt_started_at: ["instant", ({ instance }) => instance.attemptStartedAt],
  ended_at: ["instant", ({ instance }) => instance.endedAt],
  retry_at: ["instant", ({ instance }) => instance.retryAt],
  pid: ["integer", ({ instance }) => instance.pid],
  executor_job: ["bigint", ({ instance }) => instance.executorJob],
  hostname: ["text", ({ instance }) => instance.hostname],
  reason: ["message", ({ instance }) => instance.reason],
  resumed_attempt: ["uuid", ({ instance }) => instance.resumedAttempt],
  keeps_slot: [
    "boolean",
    ({ instance }) => instance.state === "deferred" && instance.wait?.keepsSlot === true,
  ],
};

const MOVES = new RowArrays({ ...LEAVES, ...SET });

/** An attempt without a worker is run by the owner of its run. */
const VALUES: Readonly<Record<string, string>> = {
  executor_job: `CASE WHEN u.attempt IS NOT NULL THEN coalesce(u.executor_job, ${MOVES.parameter(1)}::bigint) END`,
  hostname: `CASE WHEN u.attempt IS NOT NULL THEN coalesce(u.hostname, ${MOVES.parameter(2)}) END`,
};

const MOVE = statement(
  "batch-move-instances",
  `WITH moved AS (
     UPDATE task_instance t SET
       ${Object.keys(SET).map((name) => `${name} = ${VALUES[name] ?? `u.${name}`}`)},
       is_marked = false
     FROM ${MOVES.source} AS u
     WHERE t.dag_run_id = u.dag_run_id AND t.task_id = u.task_id AND t.map_index = u.map_index
       AND t.state = u.from_state AND t.attempt IS NOT DISTINCT FROM u.from_attempt
     RETURNING 1
   )
   SELECT tw_require(count(*) = ${MOVES.count}, '${STATE_MOVED}', 'an instance moved on') FROM moved`,
);

export function moveCall(
  moves: readonly InstanceMove[],
  by: { readonly jobId: number; readonly hostname: string },
): Call {
  return call(MOVE, ...MOVES.values(moves), by.jobId, by.hostname);
}

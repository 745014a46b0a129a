/**
 * How instances change: one statement for a batch of any size, and each instance only from where it is thought to be. One
 * that is elsewhere voids the batch.
 */
import type { TaskState } from "../../model/index.ts";
import { rowsLiteral } from "../database/array-literal.ts";
import { type Call, call, statement } from "../database/statement.ts";

/** SQLSTATE: an instance is not in the state, or not on the attempt, that the decision was made for. */
export const STATE_MOVED = "TW003";

/** The net change of one instance. Instants are milliseconds of the database's clock, null = not there. */
export interface InstanceWrite {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly from: TaskState;
  readonly fromAttempt: string | null;
  readonly to: TaskState;
  readonly attempt: string | null;
  readonly tryNumber: number;
  readonly infraLosses: number;
  readonly scheduledAt: number | null;
  readonly queuedAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly retryAt: number | null;
  readonly pid: number | null;
  readonly reason: string | null;
  readonly resumedAttempt: string | null;
  readonly attemptStartedAt: number | null;
  readonly keepsSlot: boolean;
  /** null: as it was. */
  readonly maxTries: number | null;
}

const moveStatement = (name: string, { from, maxTries }: { from: string; maxTries: string }) =>
  statement(
    name,
    `WITH moved AS (
     UPDATE task_instance t SET
       state = u.to_state, attempt = u.attempt, try_number = u.try_number, infra_losses = u.infra_losses,
       scheduled_at = to_timestamp(u.scheduled_at / 1000), queued_at = to_timestamp(u.queued_at / 1000),
       started_at = to_timestamp(u.started_at / 1000), ended_at = to_timestamp(u.ended_at / 1000),
       retry_at = to_timestamp(u.retry_at / 1000), pid = u.pid, reason = u.reason, resumed_attempt = u.resumed_attempt,
       attempt_started_at = to_timestamp(u.attempt_started_at / 1000), keeps_slot = u.keeps_slot,
       is_marked = false, max_tries = ${maxTries},
       executor_job = CASE WHEN u.attempt IS NULL THEN NULL ELSE $2::bigint END,
       hostname = CASE WHEN u.attempt IS NULL THEN NULL ELSE $3 END
     FROM ${from} AS u
     WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map
       AND t.state = u.from_state AND t.attempt IS NOT DISTINCT FROM u.from_attempt
     RETURNING 1
   )
   SELECT tw_require(count(*) = cardinality($1::tw_instance_move[]), '${STATE_MOVED}', 'an instance moved on') FROM moved`,
  );

const MOVE = moveStatement("batch-move-instances", {
  from: "unnest($1::tw_instance_move[])",
  maxTries: "t.max_tries",
});

/** A row that changes twice in a transaction is written twice: the tries of those that begin again change with the rest. */
const MOVE_AGAIN = moveStatement("batch-move-instances-again", {
  from: "ROWS FROM (unnest($1::tw_instance_move[]), unnest($4::int[]))",
  maxTries: "coalesce(u.unnest, t.max_tries)",
});

export function moveCall(
  moves: readonly InstanceWrite[],
  by: { readonly jobId: number; readonly hostname: string },
): Call {
  const values = [rowsLiteral(moves.map(fields)), by.jobId, by.hostname];
  const maxTries = moves.map((move) => move.maxTries);
  return maxTries.every((tries) => tries === null)
    ? call(MOVE, ...values)
    : call(MOVE_AGAIN, ...values, maxTries);
}

/** In the order of tw_instance_move. */
function fields(move: InstanceWrite) {
  return [
    move.runId,
    move.taskId,
    move.mapIndex,
    move.from,
    move.fromAttempt,
    move.to,
    move.attempt,
    move.tryNumber,
    move.infraLosses,
    move.scheduledAt,
    move.queuedAt,
    move.startedAt,
    move.endedAt,
    move.retryAt,
    move.pid,
    move.reason,
    move.resumedAttempt,
    move.attemptStartedAt,
    move.keepsSlot,
  ];
}

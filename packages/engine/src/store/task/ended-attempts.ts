/** Attempts that have ended and are followed by another. The current attempt is in task_instance. */
import type { Instance } from "../../model/index.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { type Call, call, statement } from "../database/statement.ts";

export interface AttemptWrite {
  readonly attempt: string;
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly state: string;
  readonly scheduledAt: number | null;
  readonly queuedAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** When the next try or check is due; null: none follows automatically. */
  readonly retryAt: number | null;
  readonly pid: number | null;
  readonly reason: string | null;
}

/** The current attempt of an instance, before its end changes the instance. */
export function attemptWrite(runId: number, instance: Instance, endedAt: number): AttemptWrite {
  return {
    attempt: instance.attempt ?? "",
    runId,
    taskId: instance.node.id,
    mapIndex: instance.mapIndex,
    tryNumber: instance.tryNumber,
    state: instance.state,
    scheduledAt: instance.scheduledAt,
    queuedAt: instance.queuedAt,
    startedAt: instance.attemptStartedAt ?? instance.startedAt,
    endedAt,
    retryAt: null,
    pid: instance.pid,
    reason: instance.reason,
  };
}

const ENDED = new RowArrays<AttemptWrite>({
  attempt: ["uuid", ({ attempt }) => attempt],
  dag_run_id: ["bigint", ({ runId }) => runId],
  task_id: ["text", ({ taskId }) => taskId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  try_number: ["integer", ({ tryNumber }) => tryNumber],
  state: ["text", ({ state }) => state],
  scheduled_at: ["instant", ({ scheduledAt }) => scheduledAt],
  queued_at: ["instant", ({ queuedAt }) => queuedAt],
  started_at: ["instant", ({ startedAt }) => startedAt],
  ended_at: ["instant", ({ endedAt }) => endedAt],
  retry_at: ["instant", ({ retryAt }) => retryAt],
  pid: ["integer", ({ pid }) => pid],
  reason: ["message", ({ reason }) => reason],
});

const OWN = ENDED.names.filter((name) => name !== "reason");

/** An attempt that deferred has its row already: the end of its wait has ended the try. */
export const ENDED_BY_WAIT = `ON CONFLICT (attempt) DO UPDATE SET state = EXCLUDED.state, reason = EXCLUDED.reason,
     retry_at = EXCLUDED.retry_at WHERE task_attempt.state = 'deferred'`;

/** Runs before the instances move: only the row of a lost attempt says where it ran. */
const INSERT = statement(
  "batch-insert-attempts",
  `INSERT INTO task_attempt (${OWN}, reason, executor_job, hostname)
   SELECT ${OWN.map((name) => `u.${name}`)}, coalesce(u.reason, t.reason),
          coalesce(t.executor_job, ${ENDED.parameter(1)}::bigint), coalesce(t.hostname, ${ENDED.parameter(2)})
   FROM ${ENDED.source} AS u
   LEFT JOIN task_instance t ON t.dag_run_id = u.dag_run_id AND t.task_id = u.task_id AND t.map_index = u.map_index
     AND t.attempt = u.attempt
   ${ENDED_BY_WAIT}`,
);

export function attemptCall(
  attempts: readonly AttemptWrite[],
  by: { readonly jobId: number; readonly hostname: string },
): Call {
  return call(INSERT, ...ENDED.values(onePerAttempt(attempts)), by.jobId, by.hostname);
}

/** An attempt may defer and its wait may end in one batch, and an INSERT may not change its own row: as ENDED_BY_WAIT, before it. */
function onePerAttempt(attempts: readonly AttemptWrite[]): readonly AttemptWrite[] {
  const rows = new Map<string, AttemptWrite>();
  for (const write of attempts) {
    const known = rows.get(write.attempt);
    const { reason, retryAt, state } = write;
    if (known === undefined) rows.set(write.attempt, write);
    else if (known.state === "deferred") rows.set(write.attempt, { ...known, reason, retryAt, state });
  }
  return rows.size === attempts.length ? attempts : [...rows.values()];
}

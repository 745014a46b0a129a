/**
 * The next try of a failed run. Its time is a column of the run (`retry_at`), written in the batch in which the run would
 * have ended; the run stays `running`, with its owner and its version. When the time has come, its owner clears the tasks
 * that run again, as an edit does.
 *
 * Crash before the commit: `retry_at` is unchanged, and the next owner finds the retry due. Crash after it, or a lost
 * reply: the tasks are cleared, and the owner reads the run again in any case. Concurrent calls: the row is locked, and
 * only the owner at its generation continues; this also rejects a stale owner, and the retry of a run that a user ended.
 */

import { type Call, type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { closeDrives, openDriveNow } from "../drive/run-drives.ts";
import { clearInstances } from "../edit/instance-states.ts";

/** A failed run with a retry at that time (ms); null: the run continues without one. */
export interface RetryWrite {
  readonly runId: number;
  readonly retryAt: number | null;
}

export interface RunRetry {
  readonly jobId: number;
  readonly runId: number;
  readonly generation: number;
  /** The ended instances that run again. */
  readonly again: readonly { readonly taskId: string; readonly mapIndex: number }[];
  /** The run receives signals from now on: the signals of the failed try do not apply. */
  readonly isDriven: boolean;
}

const PLAN = statement(
  "batch-plan-retries",
  `UPDATE dag_run r SET retry_at = to_timestamp(u.retry_at / 1000)
   FROM unnest($1::bigint[], $2::float8[]) AS u(id, retry_at) WHERE r.id = u.id`,
);

const BEGIN = statement(
  "run-retry-begin",
  `UPDATE dag_run SET try_number = try_number + 1, retry_at = NULL, generation = generation + 1
   WHERE id = $1 AND owner_job = $2 AND generation = $3 AND state = 'running' AND retry_at IS NOT NULL
   RETURNING id`,
);

/** The calls of a batch that set the time of retries. */
export function retryCalls(retries: readonly RetryWrite[]): Call[] {
  if (retries.length === 0) return [];
  const ids = retries.map(({ runId }) => runId);
  return [
    call(
      PLAN,
      ids,
      retries.map(({ retryAt }) => retryAt),
    ),
  ];
}

/** false: owner or generation has changed. In both cases the run has to be reloaded. */
export function beginRunRetry(db: Database, retry: RunRetry): Promise<boolean> {
  const { again, generation, isDriven, jobId, runId } = retry;
  return db.transaction(async (tx) => {
    const begun = await tx.one<{ id: number }>(BEGIN, [runId, jobId, generation]);
    if (!begun) return false;
    const taskIds = again.map(({ taskId }) => taskId);
    const mapIndexes = again.map(({ mapIndex }) => mapIndex);
    await clearInstances(tx, [again.map(() => runId), taskIds, mapIndexes], undefined);
    await renewDrive(tx, runId, isDriven);
    return true;
  });
}

async function renewDrive(tx: Connection, runId: number, isDriven: boolean): Promise<void> {
  const { statement: close, values } = closeDrives([runId]);
  await tx.rows(close, values);
  if (isDriven) await openDriveNow(tx, runId);
}

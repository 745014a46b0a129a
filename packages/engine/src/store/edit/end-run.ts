/** Ends runs manually, queues them again, deletes them. */
import { haltedAs, isFinished } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { closeDrives } from "../drive/run-drives.ts";
import { requestEnd, teardownsLeft } from "../run/run-ending.ts";
import { publishRuns } from "../task/state-signals.ts";
import { endStarts } from "./edited-drives.ts";
import { readInstances, withRestarted } from "./edited-instances.ts";
import { clearChosen, endInstances, release } from "./instance-states.ts";
import { type LockedRun, lockRuns, reopenRuns } from "./locked-runs.ts";

/** A run that has ended keeps its end. */
const END_RUN = statement(
  "edit-end-run",
  `WITH ended AS (
     UPDATE dag_run SET state = $2, end_reason = $3, started_at = coalesce(started_at, now()),
                        ended_at = CASE WHEN state IN ('success', 'failed') THEN coalesce(ended_at, now()) ELSE now() END,
                        ending = NULL, retry_at = NULL, owner_job = NULL, generation = generation + 1
     WHERE id = $1 RETURNING dag_id, run_id, state
   ) ${publishRuns("ended")}`,
);

const DELETE_RUN = statement("edit-delete-run", "DELETE FROM dag_run WHERE id = $1");

export interface RunEditResult {
  readonly found: boolean;
  readonly changed: boolean;
}

/**
 * "success" and "failed" end the run and its unfinished tasks; if teardowns are left, the run ends after them, or when it is
 * marked again. "queued" returns an ended run to the scheduler; of its tasks, only those run again whose ends no longer
 * follow from the rest of the run. `found` false: no such run.
 */
export async function markRun(
  tx: Connection,
  dagRunId: number,
  state: "queued" | "success" | "failed",
): Promise<RunEditResult> {
  const [run] = await lockRuns(tx, [{ dagRunId, tasks: null }]);
  if (!run) return { found: false, changed: false };
  if (state === "queued") {
    if (run.state === "queued" || run.state === "running") return { found: true, changed: false };
    await reopenRuns(tx, [dagRunId], false);
    const again = await withRestarted(tx, {
      rows: await readInstances(tx, [dagRunId]),
      chosen: new Set(),
      runIds: [dagRunId],
      latestVersion: false,
      wholeGroups: new Set(),
    });
    await clearChosen(tx, again, undefined);
    return { found: true, changed: true };
  }
  if (run.state === state) return { found: true, changed: false };
  await endRun(tx, { run, state, reason: `marked ${state} manually` });
  return { found: true, changed: true };
}

/** Ends a queued or running run as failed, as `markRun` does; `changed` false: it had already ended. */
export async function cancelRun(tx: Connection, dagRunId: number, reason: string): Promise<RunEditResult> {
  const [run] = await lockRuns(tx, [{ dagRunId, tasks: null }]);
  if (!run) return { found: false, changed: false };
  if (run.state === "success" || run.state === "failed") return { found: true, changed: false };
  await endRun(tx, { run, state: "failed", reason });
  return { found: true, changed: true };
}

/**
 * Running and waiting tasks take the run's end state, tasks that have not started are skipped; the owner kills the
 * processes. If teardowns are left to run, the run ends after them.
 */
async function endRun(
  tx: Connection,
  end: { run: LockedRun; state: "success" | "failed"; reason: string },
): Promise<void> {
  const all = await readInstances(tx, [end.run.id]);
  const left = await teardownsLeft(tx, end.run, all);
  const open = all.filter((row) => !isFinished(row.state) && !left.has(row));
  const states = open.map((row) => haltedAs(row.state, end.state));
  await endStarts(tx, open);
  // A run marked as success also marks its tasks that have not started; in a failed run they can still run.
  await endInstances(tx, open, { states, reason: end.reason, isMarked: end.state === "success" });
  if (left.size > 0) return requestEnd(tx, end);
  await tx.rows(END_RUN, [end.run.id, end.state, end.reason]);
  const forget = closeDrives([end.run.id]);
  await tx.rows(forget.statement, forget.values);
}

/** "active": the run is running and has to be cancelled first. */
export async function deleteRun(
  tx: Connection,
  dagRunId: number,
): Promise<"deleted" | "active" | "not_found"> {
  const [run] = await lockRuns(tx, [{ dagRunId, tasks: null }]);
  if (!run) return "not_found";
  if (run.state === "running") return "active";
  await release(tx, await readInstances(tx, [dagRunId]));
  await tx.rows(DELETE_RUN, [dagRunId]);
  return "deleted";
}

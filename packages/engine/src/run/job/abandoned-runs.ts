/** Ends the runs of sub-DAGs that no task waits for. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { WakeUps } from "../../job/wake-up.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import { cancelRun } from "../../store/edit/end-run.ts";
import { type AbandonedRun, abandonedRuns } from "../../store/run/child-runs.ts";

/** Maximum number per call. */
const LIMIT = 50;

export interface AbandonedRunsOptions {
  readonly database: Database;
  readonly wakeUps: WakeUps;
  readonly logger: Logger;
}

/**
 * Cancels each run as a user would. That abandons the sub-DAGs inside it, which the next call finds. true: runs were found,
 * so another call is due.
 */
export async function cancelAbandoned({ database, wakeUps, logger }: AbandonedRunsOptions): Promise<boolean> {
  const found = await abandonedRuns(database, LIMIT);
  for (const run of found) {
    const { changed } = await database.transaction((tx) => cancelRun(tx, run.id, reasonOf(run)));
    if (!changed) continue;
    logger.info("cancelled the run of a sub-DAG", { dagId: run.dag_id, runId: run.run_id });
    wakeUps.send(`run:${run.id}`);
    wakeUps.send("ended");
  }
  return found.length > 0;
}

const known = new WeakMap<DagManifest, boolean>();

/** Whether runs of this DAG may have sub-DAGs. */
export function hasSubDags(manifest: DagManifest): boolean {
  const answer = known.get(manifest) ?? manifest.tasks.some(({ dag }) => dag !== undefined);
  known.set(manifest, answer);
  return answer;
}

function reasonOf({ parent_dag, parent_run, parent_task_id }: AbandonedRun): string {
  return parent_dag === null
    ? "cancelled: the run that it was a part of is gone"
    : `cancelled: task ${parent_task_id} of run ${parent_run} of DAG ${parent_dag} no longer waits for it`;
}

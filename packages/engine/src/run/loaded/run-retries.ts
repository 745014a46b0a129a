/** Failed runs that are tried again: what runs again is cleared, and the run is read again by whoever owns it then. */
import type { Database } from "../../store/database/database.ts";
import { beginRunRetry, type RetryWrite } from "../../store/run/run-retry.ts";
import type { RunActor } from "./run-actor.ts";

/** That these runs will be tried again is stored. */
export function noteRetries(actors: ReadonlyMap<number, RunActor>, retries: readonly RetryWrite[]): void {
  for (const { runId, retryAt } of retries) {
    const actor = actors.get(runId);
    if (actor) actor.retryAt = retryAt;
  }
}

/** Their next try is due. The caller reads them again, also when this rejects: nobody knows then how far it got. */
export async function beginRetries(
  database: Database,
  jobId: number,
  due: readonly RunActor[],
): Promise<void> {
  for (const { id, model, run, version } of due) {
    const again = model.retried(version.manifest.runRetry?.from ?? "failure");
    await beginRunRetry(database, {
      jobId,
      runId: id,
      generation: run.generation,
      again: again.map(({ mapIndex, node }) => ({ taskId: node.id, mapIndex })),
      isDriven: version.isDriven,
    });
  }
}

/** Retries of failed runs: tasks that run again are cleared, and the owner of the run loads it again. */
import type { Database } from "../../store/database/database.ts";
import { beginRunRetry, type RetryWrite } from "../../store/run/run-retry.ts";
import type { RunActor } from "./run-actor.ts";

/** The retries of these runs are stored. */
export function recordRetries(actors: ReadonlyMap<number, RunActor>, retries: readonly RetryWrite[]): void {
  for (const { runId, retryAt } of retries) {
    const actor = actors.get(runId);
    if (actor) actor.retryAt = retryAt;
  }
}

/** Starts the next try of these runs. The caller loads them again, also if this rejects: the outcome is unknown then. */
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

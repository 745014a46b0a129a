/** Compares the stored runs of a job with its memory, to find edits and pauses whose wake-up was lost. */
import type { Database } from "../../store/database/database.ts";
import { ownedRuns } from "../../store/run/run-claim.ts";
import type { RunActor } from "../loaded/run-actor.ts";

export interface OwnedRuns {
  /** Runs to load again: edited, owned by another job, or claimed and not loaded. */
  readonly stale: readonly number[];
  /** For the other runs: whether their DAG is paused. */
  readonly paused: ReadonlyMap<RunActor, boolean>;
}

export async function compareOwned(
  database: Database,
  jobId: number,
  actors: ReadonlyMap<number, RunActor>,
): Promise<OwnedRuns> {
  const owned = new Map((await ownedRuns(database, jobId)).map((run) => [run.id, run]));
  const stale: number[] = [];
  const paused = new Map<RunActor, boolean>();
  for (const actor of actors.values()) {
    const row = owned.get(actor.id);
    if (row?.generation !== actor.run.generation) stale.push(actor.id);
    else paused.set(actor, row.is_paused);
  }
  // Claimed by this job, and loading them failed.
  for (const id of owned.keys()) if (!actors.has(id)) stale.push(id);
  return { stale, paused };
}

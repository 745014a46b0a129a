/** What the database says a job owns, against what it has in memory: edits and pauses whose wake-up got lost show here. */
import type { Database } from "../../store/database/database.ts";
import { ownedRuns } from "../../store/run/run-claim.ts";
import type { RunActor } from "../loaded/run-actor.ts";

export interface OwnedRuns {
  /** To be read again: edited, taken by others, or claimed by us without having been loaded. */
  readonly stale: readonly number[];
  /** Whether the DAG of each of the others is paused. */
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
  // Claimed by us, but the process stumbled before it could load them.
  for (const id of owned.keys()) if (!actors.has(id)) stale.push(id);
  return { stale, paused };
}

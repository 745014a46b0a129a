/** Claimed runs become actors: a fresh one from its DAG version alone, any other from its journal. */
import type { Database } from "../store/database.ts";
import type { ClaimedRun } from "../store/run-claim.ts";
import { loadInstances, loadSkips } from "../store/run-load.ts";
import { loadedActor, newActor, type RunActor } from "./run-actor.ts";
import type { VersionCache } from "./version-cache.ts";

export async function loadActors(
  database: Database,
  versions: VersionCache,
  runs: readonly ClaimedRun[],
): Promise<RunActor[]> {
  const known = runs.filter((run) => !run.is_fresh).map((run) => run.id);
  const instances = known.length > 0 ? await loadInstances(database, known) : [];
  const skips = known.length > 0 ? await loadSkips(database, known) : [];
  const byRun = Map.groupBy(instances, (row) => row.dag_run_id);
  const actors: RunActor[] = [];
  for (const run of runs) {
    const version = await versions.get(database, run.version_id);
    const own = skips.filter((row) => row.dag_run_id === run.id);
    const journal = {
      instances: byRun.get(run.id) ?? [],
      skips: new Map(own.map((row) => [row.task_id, row.value])),
    };
    actors.push(run.is_fresh ? newActor(run, version) : loadedActor(run, version, journal));
  }
  return actors;
}

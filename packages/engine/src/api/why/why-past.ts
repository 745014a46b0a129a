/** `why` for dependsOnPast: the previous run, and the first earlier run that blocks it. */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../../store/database/database.ts";
import { blockingRuns, countStates, type StateCount } from "../../store/why/why-facts.ts";
import type { Finding } from "./why-deferred.ts";
import { listStates } from "./why-upstream.ts";

export async function pastReasons(
  db: Connection,
  { manifest, run, task }: { manifest: DagManifest; run: { readonly id: number }; task: TaskManifest },
): Promise<Finding[]> {
  if (!task.dependsOnPast && !task.waitForDownstream) return [];
  const taskIds = [task.taskId, ...(task.waitForDownstream ? downstreamOf(manifest, task.taskId) : [])];
  const runs = await blockingRuns(db, run.id, taskIds);
  const [latest, first] = [runs[0], runs.at(-1)];
  if (latest === undefined || first === undefined) return [];
  const states = await openStates(db, first.id, taskIds);
  const before =
    runs.length === 1
      ? ""
      : `, which in turn waits for the run before it. The first of ${runs.length} such runs is "${first.run_id}"`;
  return [
    {
      code: "DEPENDS_ON_PAST",
      message: `It depends on its own success in run "${latest.run_id}"${before}: ${listStates(states)}.`,
      until: null,
      runId: first.run_id,
      tasks: states.map(({ first: mapIndex, state, task_id }) => ({
        task_id,
        map_index: mapIndex,
        state: state === "pending" ? null : state,
      })),
    },
  ];
}

/** A run that has not started has no instances yet. */
async function openStates(
  db: Connection,
  dagRunId: number,
  taskIds: readonly string[],
): Promise<StateCount[]> {
  const counts = await countStates(db, dagRunId, taskIds);
  if (counts.length === 0) return [{ task_id: taskIds[0]!, state: "pending", count: 1, first: -1 }];
  return counts.filter(({ state }) => state !== "success" && state !== "skipped");
}

function downstreamOf({ tasks }: DagManifest, taskId: string): string[] {
  return tasks.filter(({ upstream }) => upstream.includes(taskId)).map((task) => task.taskId);
}

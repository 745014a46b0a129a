/**
 * Setups and their scopes: the tasks between a setup and its teardowns; all that comes after it, if it has none. What is in a
 * scope runs only if the setup has succeeded, and is never run again without it.
 */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";

type Edges = readonly (readonly number[])[];

/** By position in `order`. */
export function setupScope(order: readonly TaskManifest[], downstream: Edges, setup: number): Set<number> {
  const { taskId } = order[setup]!;
  const behind = reached([setup], downstream);
  const ends = [...behind].filter((index) => order[index]!.teardown?.of === taskId);
  const upstream: number[][] = order.map(() => []);
  downstream.forEach((targets, index) => {
    for (const target of targets) upstream[target]!.push(index);
  });
  const before = ends.length > 0 ? reached(ends, upstream) : behind;
  const scope = [...behind].filter((index) => before.has(index) && order[index]!.role !== "teardown");
  return new Set(scope);
}

/** What has to be run again with some tasks: the setups in whose scope they are, and the teardowns of those. */
export function withSetups(manifest: DagManifest, taskIds: ReadonlySet<string>): Set<string> {
  const order = manifest.tasks;
  const indexById = new Map(order.map((task, index) => [task.taskId, index]));
  const downstream: number[][] = order.map(() => []);
  order.forEach((task, index) => {
    for (const up of task.upstream) downstream[indexById.get(up) ?? -1]?.push(index);
  });
  const all = new Set(taskIds);
  for (const [index, task] of order.entries()) {
    if (task.role !== "setup") continue;
    const isNeeded = [...setupScope(order, downstream, index)].some((each) =>
      taskIds.has(order[each]!.taskId),
    );
    if (!isNeeded && !taskIds.has(task.taskId)) continue;
    all.add(task.taskId);
    for (const { taskId, teardown } of order) if (teardown?.of === task.taskId) all.add(taskId);
  }
  return all;
}

function reached(from: readonly number[], edges: Edges): Set<number> {
  const seen = new Set<number>();
  const open = [...from];
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    for (const next of edges[index]!) {
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
  return seen;
}

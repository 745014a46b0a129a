/**
 * Setups and their scopes: the tasks between a setup and its teardowns, or everything downstream if it has no teardown. A
 * task in a scope runs only if the setup has succeeded, and never runs again without it.
 */
import type { TaskManifest } from "@tradewind/sdk/manifest";
import { isFinished, type TaskState } from "../run/states.ts";

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

/** A setup in one of these states may have created something. */
const BEGUN: ReadonlySet<TaskState> = new Set([
  "success",
  "running",
  "restarting",
  "deferred",
  "up_for_reschedule",
]);

interface Place {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly state: TaskState;
}

/**
 * The teardowns that must be left to run when a run is cancelled: those whose setup may have created something. Their
 * trigger rule decides, once all active tasks have ended, whether they run. `setupOf`: by teardown.
 */
export function pendingTeardowns<P extends Place>(
  setupOf: ReadonlyMap<string, string>,
  places: readonly P[],
): P[] {
  const setups = new Map([...setupOf.values()].map((id) => [id, new Map<number, TaskState>()]));
  for (const { mapIndex, state, taskId } of places) setups.get(taskId)?.set(mapIndex, state);
  return places.filter(({ mapIndex, state, taskId }) => {
    const states = setups.get(setupOf.get(taskId) ?? "");
    if (states === undefined || isFinished(state)) return false;
    // In a map, each item has its own setup.
    const own = states.get(mapIndex);
    return own === undefined ? states.values().some((each) => BEGUN.has(each)) : BEGUN.has(own);
  });
}

/** The position of a task relative to a setup, as far as the graph tells. */
interface Placed {
  readonly mapIndex: number;
  readonly node: {
    readonly index: number;
    readonly scope: unknown;
    readonly downstream: readonly number[];
    readonly guards: readonly { readonly index: number }[];
  };
}

/** Whether an instance uses what this setup instance creates, or is its teardown. */
export function dependsOnSetup({ mapIndex, node }: Placed, setup: Placed): boolean {
  // In a map, each item has its own setup.
  if (node.scope !== null && node.scope === setup.node.scope && mapIndex !== setup.mapIndex) return false;
  const { downstream, guards } = setup.node;
  return downstream.includes(node.index) || guards.some(({ index }) => index === node.index);
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

/**
 * Setups and their scopes: the tasks between a setup and its teardowns; all that comes after it, if it has none. What is in a
 * scope runs only if the setup has succeeded, and is never run again without it.
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

/** A setup so far may have made something. */
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
 * The teardowns among the instances of a run that have to be left to run when somebody ends it: those with something to clear
 * away. Whether they do run is up to their rule, when all that was under way has ended. `setupOf`: by teardown.
 */
export function owedTeardowns<P extends Place>(
  setupOf: ReadonlyMap<string, string>,
  places: readonly P[],
): P[] {
  const setups = new Map([...setupOf.values()].map((id) => [id, new Map<number, TaskState>()]));
  for (const { mapIndex, state, taskId } of places) setups.get(taskId)?.set(mapIndex, state);
  return places.filter(({ mapIndex, state, taskId }) => {
    const states = setups.get(setupOf.get(taskId) ?? "");
    if (states === undefined || isFinished(state)) return false;
    // In a map, each item has its own.
    const own = states.get(mapIndex);
    return own === undefined ? states.values().some((each) => BEGUN.has(each)) : BEGUN.has(own);
  });
}

/** What a task has to do with a setup, as far as that can be told from the graph. */
interface Placed {
  readonly mapIndex: number;
  readonly node: {
    readonly index: number;
    readonly scope: unknown;
    readonly downstream: readonly number[];
    readonly guards: readonly { readonly index: number }[];
  };
}

/** Whether an instance uses what this instance of a setup makes, or clears it away. */
export function dependsOnSetup({ mapIndex, node }: Placed, setup: Placed): boolean {
  // In a map, each item has its own.
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

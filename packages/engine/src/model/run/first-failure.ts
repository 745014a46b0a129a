/** The failure that a failed run, or a failed group of tasks, is a consequence of. */
import type { TaskNode } from "../graph/graph.ts";
import type { Instance } from "./instance.ts";
import { FAILED } from "./states.ts";

/**
 * Of the failures that a failed end follows from, the earliest. A failure that another task has dealt with is none of them,
 * unless there is no other. Undefined: no task has failed. `isLeaf`: its end decides.
 */
export function firstFailure(
  instances: Iterable<Instance>,
  isLeaf: (node: TaskNode) => boolean,
): Instance | undefined {
  const failed: Instance[] = [];
  const failing = new Map<number, TaskNode>();
  /** Tasks that did not run because of what came before them. */
  const implied = new Set<number>();
  for (const instance of instances) {
    const { node, state } = instance;
    if (!FAILED.has(state)) continue;
    failing.set(node.index, node);
    if (state === "failed") failed.push(instance);
    else implied.add(node.index);
  }
  const behind = new Set<number>();
  const open = [...failing.values()].filter(isLeaf);
  for (let node = open.pop(); node; node = open.pop()) {
    if (behind.has(node.index)) continue;
    behind.add(node.index);
    if (implied.has(node.index)) open.push(...node.upstream.flatMap((up) => failing.get(up) ?? []));
  }
  const decisive = failed.filter(({ node }) => behind.has(node.index));
  return (decisive.length > 0 ? decisive : failed).reduce<Instance | undefined>(
    (first, each) => (first === undefined || isEarlier(each, first) ? each : first),
    undefined,
  );
}

/** What is needed to compare the ends of two failed instances. */
interface Failure {
  readonly node: TaskNode;
  readonly mapIndex: number;
  readonly endedAt: number | null;
}

/** By their ends, then in topological order. */
export function isEarlier(a: Failure, b: Failure): boolean {
  const byTime = (a.endedAt ?? Number.POSITIVE_INFINITY) - (b.endedAt ?? Number.POSITIVE_INFINITY);
  if (byTime !== 0 && !Number.isNaN(byTime)) return byTime < 0;
  return a.node.index < b.node.index || (a.node === b.node && a.mapIndex < b.mapIndex);
}

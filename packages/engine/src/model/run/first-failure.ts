/** The failure that caused a run or a group of tasks to fail. */
import type { TaskNode } from "../graph/graph.ts";
import type { Instance } from "./instance.ts";
import { FAILED } from "./states.ts";

/**
 * The earliest of the failures that led to a failed end. A failure that another task has handled counts only if there is no
 * other. Undefined: no task has failed. `isLeaf`: the state of the task decides the end.
 */
export function firstFailure(
  instances: Iterable<Instance>,
  isLeaf: (node: TaskNode) => boolean,
): Instance | undefined {
  const failed: Instance[] = [];
  const failing = new Map<number, TaskNode>();
  /** Tasks that did not run because of an upstream failure. */
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

interface Failure {
  readonly node: TaskNode;
  readonly mapIndex: number;
  readonly endedAt: number | null;
}

/** By end time, then in topological order. */
export function isEarlier(a: Failure, b: Failure): boolean {
  const byTime = (a.endedAt ?? Number.POSITIVE_INFINITY) - (b.endedAt ?? Number.POSITIVE_INFINITY);
  if (byTime !== 0 && !Number.isNaN(byTime)) return byTime < 0;
  return a.node.index < b.node.index || (a.node === b.node && a.mapIndex < b.mapIndex);
}

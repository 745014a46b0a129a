/**
 * A DAG's manifest, compiled once per version and shared by all its runs: tasks numbered in topological order, edges as
 * numbers, effective priorities computed. Immutable.
 */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";
import { runLeaves } from "../run/leaves.ts";
import { type Covers, compileGroups, coversOf, type GroupNode } from "./group-node.ts";
import { commonDepth, compileScopes, type Scope } from "./scope.ts";
import { setupScope } from "./setups.ts";
import { effectiveWeights } from "./weights.ts";

export interface TaskNode {
  /** Position in topological order: every upstream task has a smaller index. */
  readonly index: number;
  readonly id: string;
  readonly manifest: TaskManifest;
  readonly upstream: readonly number[];
  readonly downstream: readonly number[];
  /** The innermost map around the task. */
  readonly scope: Scope | null;
  /** For each edge to `downstream`: the number of scopes that both ends share. */
  readonly levels: readonly number[];
  /** Maps that run over the task's output, with the level of the edge. */
  readonly feeds: readonly { readonly scope: Scope; readonly level: number }[];
  /** For a setup: the tasks in its scope that are not directly downstream, with the level of the edge. */
  readonly guards: readonly { readonly index: number; readonly level: number }[];
  /** The innermost group around the task with retries, callbacks or notices. */
  readonly group: GroupNode | null;
  /** The groups that cover its edges; null: none. */
  readonly covers: Covers | null;
  /** Effective priority, by the task's weight rule. */
  readonly weight: number;
  /** The final state of the task decides whether the run succeeded. */
  readonly isLeaf: boolean;
  /** The task waits for earlier runs of its DAG in addition to its upstream: dependsOnPast or waitForDownstream. */
  readonly gated: boolean;
}

export interface Graph {
  readonly dagId: string;
  /** By index. */
  readonly nodes: readonly TaskNode[];
  readonly byId: ReadonlyMap<string, TaskNode>;
  /** Parents first. */
  readonly scopes: readonly Scope[];
  /** Groups with retries, callbacks or notices; parents first. */
  readonly groups: readonly GroupNode[];
}

const NO_FEEDS: TaskNode["feeds"] = [];
const NO_GUARDS: TaskNode["guards"] = [];

/** Linear in tasks and edges (but see weights.ts). Rejects unknown upstream tasks, duplicate ids and cycles. */
export function compileGraph(manifest: DagManifest): Graph {
  const order = inTopologicalOrder(manifest);
  const indexById = new Map(order.map((task, index) => [task.taskId, index]));
  const upstream = order.map((task) => [...new Set(task.upstream)].map((id) => indexById.get(id)!));
  const downstream: number[][] = order.map(() => []);
  upstream.forEach((ups, index) => {
    for (const up of ups) downstream[up]!.push(index);
  });
  const weights = effectiveWeights(order, upstream, downstream);
  const leaves = runLeaves(order, downstream);
  const scopes = compileScopes(manifest, order);
  const scopeOf = (index: number) => scopes.get(order[index]!.map ?? "") ?? null;
  const feeds = new Map<number, { scope: Scope; level: number }[]>();
  for (const scope of scopes.values()) {
    for (const source of scope.sources) {
      const fed = feeds.get(source) ?? [];
      feeds.set(source, [...fed, { scope, level: commonDepth(scopeOf(source), scope.parent) }]);
    }
  }
  const groups = compileGroups(manifest, { order, downstream, scopes, scopeOf });
  const guardsOf = (index: number): TaskNode["guards"] =>
    order[index]!.role !== "setup"
      ? NO_GUARDS
      : [...setupScope(order, downstream, index)]
          .filter((each) => !downstream[index]!.includes(each))
          .map((each) => ({ index: each, level: commonDepth(scopeOf(index), scopeOf(each)) }));
  const nodes = order.map((task, index): TaskNode => {
    const group = groups.of(task);
    const edges = {
      downstream: downstream[index]!,
      feeds: feeds.get(index) ?? NO_FEEDS,
      guards: guardsOf(index),
    };
    return {
      index,
      id: task.taskId,
      manifest: task,
      upstream: upstream[index]!,
      ...edges,
      scope: scopeOf(index),
      levels: downstream[index]!.map((down) => commonDepth(scopeOf(index), scopeOf(down))),
      group,
      covers: coversOf(group, edges),
      weight: weights[index]!,
      isLeaf: leaves.has(index),
      gated: task.dependsOnPast || task.waitForDownstream,
    };
  });
  const byId = new Map(nodes.map((node) => [node.id, node]));
  return { dagId: manifest.dagId, nodes, byId, scopes: [...scopes.values()], groups: groups.all };
}

/** Depth first, upstream before task, otherwise in manifest order: a sorted manifest keeps its order. */
export function inTopologicalOrder(manifest: Pick<DagManifest, "dagId" | "tasks">): TaskManifest[] {
  const tasks = new Map<string, TaskManifest>();
  for (const task of manifest.tasks) {
    if (tasks.has(task.taskId)) {
      throw new ModelError(
        "GRAPH_DUPLICATE_TASK",
        `DAG "${manifest.dagId}" has two tasks named "${task.taskId}". Rename one of them.`,
      );
    }
    tasks.set(task.taskId, task);
  }
  const order: TaskManifest[] = [];
  const mark = new Map<string, "open" | "placed">();
  for (const root of manifest.tasks) {
    // An explicit stack: a chain of 100,000 tasks would overflow the call stack.
    const stack = [{ task: root, next: 0 }];
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const { task } = top;
      if (mark.get(task.taskId) === "placed") {
        stack.pop();
        continue;
      }
      mark.set(task.taskId, "open");
      const upId = task.upstream[top.next++];
      if (upId === undefined) {
        mark.set(task.taskId, "placed");
        order.push(task);
        stack.pop();
        continue;
      }
      const up = tasks.get(upId);
      if (!up) {
        throw new ModelError(
          "GRAPH_UNKNOWN_UPSTREAM",
          `Task "${task.taskId}" of DAG "${manifest.dagId}" names upstream "${upId}", which does not exist. Add that task or remove the edge.`,
        );
      }
      if (mark.get(upId) === "open") {
        const path = stack.map((frame) => frame.task.taskId);
        const cycle = [...path.slice(path.indexOf(upId)).reverse(), path[path.length - 1]!];
        throw new ModelError(
          "GRAPH_CYCLE",
          `DAG "${manifest.dagId}" has a cycle: ${cycle.join(" -> ")}. Remove one of these edges.`,
        );
      }
      if (!mark.has(upId)) stack.push({ task: up, next: 0 });
    }
  }
  return order;
}

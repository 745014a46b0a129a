/** A DAG for drawing: its tasks in topological order, and their properties. */
import type { Task } from "../../client/resources.ts";

export type NodeKind = "task" | "branch" | "setup" | "teardown";

export interface GraphNode {
  readonly id: string;
  readonly kind: NodeKind;
  /** A mapped task. */
  readonly isMapped: boolean;
  /** The enclosing groups, outermost first. */
  readonly groups: readonly string[];
  readonly upstream: readonly string[];
  /** The setup of a teardown. */
  readonly setup: string | null;
}

export interface DagGraph {
  readonly dagId: string;
  readonly nodes: readonly GraphNode[];
}

const BRANCHES: ReadonlySet<string> = new Set(["branch", "shortCircuit", "latestOnly"]);

export function dagGraph(dagId: string, tasks: readonly Task[]): DagGraph {
  const ordered = [...tasks].sort((a, b) => a.topological_index - b.topological_index);
  return { dagId, nodes: ordered.map(graphNode) };
}

function graphNode(task: Task): GraphNode {
  const isBranch = BRANCHES.has(task.operator_name ?? "");
  return {
    id: task.task_id,
    kind: task.role === "work" ? (isBranch ? "branch" : "task") : task.role,
    isMapped: task.is_mapped,
    groups: task.task_group_path,
    upstream: task.upstream_task_ids,
    setup: task.teardown_of,
  };
}

/** The name of a mapped task with empty brackets. */
export function nodeLabel({ id, isMapped }: GraphNode): string {
  return isMapped ? `${id}[]` : id;
}

/** Without the name of the enclosing group, which its box shows. */
export function labelInGroup(node: GraphNode): string {
  const group = node.groups.at(-1);
  const label = nodeLabel(node);
  return group !== undefined && label.startsWith(`${group}.`) ? label.slice(group.length + 1) : label;
}

/** Each group once, parents before children. */
export function groupsOf({ nodes }: DagGraph): { readonly id: string; readonly parent: string | null }[] {
  const groups = new Map<string, string | null>();
  for (const node of nodes)
    for (const [depth, id] of node.groups.entries()) groups.set(id, node.groups[depth - 1] ?? null);
  return [...groups].map(([id, parent]) => ({ id, parent }));
}

/** By the longest path from a start: 0 has no upstream. */
export function levelsOf({ nodes }: DagGraph): ReadonlyMap<string, number> {
  const levels = new Map<string, number>();
  for (const { id, upstream } of nodes)
    levels.set(
      id,
      upstream.reduce((deepest, up) => Math.max(deepest, (levels.get(up) ?? -1) + 1), 0),
    );
  return levels;
}

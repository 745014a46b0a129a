/** The tasks of a DAG in the order of a tree: the tasks of a group follow each other, groups begin where their first task is. */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { inTopologicalOrder } from "../../model/index.ts";

export const treeTaskDocument = z
  .object({
    task_id: z.string(),
    group: z.string().nullable(),
    operator: z.string(),
    is_mapped: z.boolean(),
    role: z.enum(["work", "setup", "teardown"]),
  })
  .meta({ id: "UiTreeTask" });

export const treeGroupDocument = z
  .object({ group_id: z.string(), parent: z.string().nullable(), is_mapped: z.boolean() })
  .meta({ id: "UiTreeGroup" });

export const treeEdgesDocument = z
  .object({ from: z.array(z.number()), to: z.array(z.number()) })
  .describe("Positions of tasks, one pair per dependency.");

export interface TaskTree {
  readonly tasks: z.output<typeof treeTaskDocument>[];
  readonly groups: z.output<typeof treeGroupDocument>[];
  readonly edges: z.output<typeof treeEdgesDocument>;
}

export function taskTree(manifest: DagManifest | null): TaskTree {
  if (manifest === null) return { tasks: [], groups: [], edges: { from: [], to: [] } };
  const parents = new Map(manifest.groups.map(({ groupId, parent }) => [groupId, parent]));
  const maps = new Set((manifest.maps ?? []).map(({ mapId }) => mapId));
  const root = new Node();
  const nodes = new Map<string, Node>();
  const nodeOf = (group: string | null): Node => {
    if (group === null) return root;
    const known = nodes.get(group);
    if (known !== undefined) return known;
    const node = new Node();
    nodes.set(group, node);
    nodeOf(parents.get(group) ?? null).children.push(node);
    return node;
  };
  for (const task of inTopologicalOrder(manifest)) nodeOf(task.group).children.push(task);
  const tasks = [...root.tasks()];
  return {
    edges: edgesOf(tasks),
    tasks: tasks.map((task) => ({
      task_id: task.taskId,
      group: task.group,
      operator: task.operator,
      is_mapped: task.map !== undefined,
      role: task.role,
    })),
    groups: manifest.groups.map(({ groupId, parent }) => ({
      group_id: groupId,
      parent,
      is_mapped: maps.has(groupId),
    })),
  };
}

function edgesOf(tasks: readonly TaskManifest[]): TaskTree["edges"] {
  const places = new Map(tasks.map(({ taskId }, place) => [taskId, place]));
  const edges: TaskTree["edges"] = { from: [], to: [] };
  for (const [place, { upstream }] of tasks.entries())
    for (const source of upstream) {
      edges.from.push(places.get(source)!);
      edges.to.push(place);
    }
  return edges;
}

class Node {
  readonly children: (Node | TaskManifest)[] = [];

  *tasks(): Generator<TaskManifest> {
    for (const child of this.children)
      if (child instanceof Node) yield* child.tasks();
      else yield child;
  }
}

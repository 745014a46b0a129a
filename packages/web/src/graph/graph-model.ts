/** What a graph of tasks shows: groups as boxes, collapsed ones as single nodes, and the edges between what is visible. Pure. */

import { parentsOf, pathOf, shortName } from "./group-paths.ts";

export interface Structure {
  readonly tasks: readonly StructureTask[];
  readonly groups: readonly { readonly group_id: string; readonly parent: string | null }[];
  /** Positions of tasks. */
  readonly edges: { readonly from: readonly number[]; readonly to: readonly number[] };
}

interface StructureTask {
  readonly task_id: string;
  readonly group: string | null;
  readonly operator: string;
  readonly is_mapped: boolean;
  /** Instead of its id. */
  readonly label?: string;
  /** Data that tasks read and write, not a task. */
  readonly isData?: boolean;
}

export interface VisibleNode {
  /** "t " or "g ", and the id of the task or group: both kinds may have the same ids. */
  readonly key: string;
  readonly id: string;
  readonly kind: "task" | "open" | "collapsed";
  /** The key of the group around it. */
  readonly parent: string | null;
  readonly label: string;
  /** Of a group: all tasks inside of it. */
  readonly places: readonly number[];
}

interface VisibleEdge {
  readonly from: string;
  readonly to: string;
}

export interface VisibleGraph {
  /** A group before what is in it. */
  readonly nodes: readonly VisibleNode[];
  readonly edges: readonly VisibleEdge[];
}

export const taskKey = (taskId: string) => `t ${taskId}`;
const groupKey = (groupId: string) => `g ${groupId}`;

export function visibleGraph(structure: Structure, collapsed: ReadonlySet<string>): VisibleGraph {
  const { edges, groups, tasks } = structure;
  const parents = parentsOf(groups);
  const inside = placesByGroup(structure);
  const nodes: VisibleNode[] = [];
  const shown = new Set<string>();
  /** For each task, the node that stands for it. */
  const standsFor: string[] = [];
  for (const [place, task] of tasks.entries()) {
    const path = pathOf(task.group, parents);
    let parent: string | null = null;
    let hidden: string | null = null;
    for (const [depth, group] of path.entries()) {
      const key = groupKey(group);
      const isCollapsed = collapsed.has(group);
      if (!shown.has(key)) {
        shown.add(key);
        const label = shortName(group, path[depth - 1] ?? null);
        const kind = isCollapsed ? "collapsed" : "open";
        nodes.push({ key, id: group, kind, parent, label, places: inside.get(group) ?? [] });
      }
      if (isCollapsed) {
        hidden = key;
        break;
      }
      parent = key;
    }
    const key = taskKey(task.task_id);
    standsFor.push(hidden ?? key);
    if (hidden === null)
      nodes.push({
        ...{ key, id: task.task_id, kind: "task" as const, parent },
        label: task.label ?? shortName(task.task_id, task.group),
        places: [place],
      });
  }
  const known = new Set<string>();
  const visible: VisibleEdge[] = [];
  for (const [index, place] of edges.from.entries()) {
    const [from, to] = [standsFor[place], standsFor[edges.to[index]!]];
    if (from === undefined || to === undefined || from === to) continue;
    const name = `${from}\0${to}`;
    if (known.has(name)) continue;
    known.add(name);
    visible.push({ from, to });
  }
  return { nodes, edges: visible };
}

/**
 * Groups to collapse so that at most `most` nodes are visible: the largest outer ones first. Groups that are collapsed or were
 * opened by the user stay as they are.
 */
export function groupsToCollapse(
  structure: Structure,
  collapsed: ReadonlySet<string>,
  opened: ReadonlySet<string>,
  most: number,
): ReadonlySet<string> {
  const count = (of: ReadonlySet<string>) => visibleGraph(structure, of).nodes.length;
  const result = new Set(collapsed);
  if (count(result) <= most) return result;
  const inside = placesByGroup(structure);
  const candidates = structure.groups
    .filter(({ group_id, parent }) => parent === null && !collapsed.has(group_id) && !opened.has(group_id))
    .toSorted((a, b) => (inside.get(b.group_id)?.length ?? 0) - (inside.get(a.group_id)?.length ?? 0));
  for (const { group_id } of candidates) {
    result.add(group_id);
    if (count(result) <= most) break;
  }
  return result;
}

function placesByGroup({ groups, tasks }: Structure): Map<string, number[]> {
  const parents = parentsOf(groups);
  const inside = new Map<string, number[]>();
  for (const [place, { group }] of tasks.entries())
    for (const each of pathOf(group, parents)) {
      const places = inside.get(each) ?? [];
      places.push(place);
      inside.set(each, places);
    }
  return inside;
}

/**
 * Groups in the model: only groups with retries, callbacks or notices; other groups are only names. A group with retries is
 * one unit of work: for tasks outside, none of its tasks has ended before the whole group has ended permanently. Therefore
 * each edge that leaves such a group is covered by it, or by the outermost one if the edge leaves several. A mapped group
 * with retries, or one in a map, is one such unit per item.
 */
import type { DagManifest, GroupManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { runLeaves } from "../run/leaves.ts";
import type { Scope } from "./scope.ts";

export interface GroupNode {
  readonly id: string;
  /** Position among the groups of the graph; an inner group has a greater index than its outer groups. */
  readonly index: number;
  /** The nearest enclosing group in the graph. */
  readonly parent: GroupNode | null;
  readonly children: readonly GroupNode[];
  /** How many times the group runs again. */
  readonly retries: number;
  readonly delayMs: number;
  readonly manifest: GroupManifest;
  /** Tasks in the group and its inner groups, by node index, in topological order. */
  readonly members: ReadonlySet<number>;
  /** Tasks whose final states decide the state of the group. */
  readonly leaves: ReadonlySet<number>;
  /** Set if the group is one unit of work per item of this map: it, or a group around it, is mapped and has retries. */
  readonly scope: Scope | null;
  /** The number of nested maps down to `scope`; 0: the group is a single unit. */
  readonly depth: number;
  /** All maps that contain its tasks, and those of them directly inside `scope`. */
  readonly scopes: ReadonlySet<Scope>;
  readonly maps: readonly Scope[];
}

/** The covering group of each edge of a task, in the order of the edges in its node. */
export interface Covers {
  readonly downstream: readonly (GroupNode | null)[];
  readonly guards: readonly (GroupNode | null)[];
  readonly feeds: readonly (GroupNode | null)[];
}

interface Order {
  readonly order: readonly TaskManifest[];
  readonly downstream: readonly (readonly number[])[];
  readonly scopes: ReadonlyMap<string, Scope>;
  readonly scopeOf: (index: number) => Scope | null;
}

/** The groups of a graph, parents first, and the innermost group around a task. */
export interface GroupSet {
  readonly all: readonly GroupNode[];
  readonly of: (task: TaskManifest) => GroupNode | null;
}

export function compileGroups(manifest: DagManifest, graph: Order): GroupSet {
  const kept = manifest.groups.filter(({ callbacks, notices, retry }) => retry || callbacks || notices);
  if (kept.length === 0) return { all: [], of: () => null };
  const parents = new Map(manifest.groups.map(({ groupId, parent }) => [groupId, parent]));
  const members = new Map(kept.map(({ groupId }) => [groupId, [] as number[]]));
  for (const [index, { group }] of graph.order.entries())
    for (const id of chainOf(group, parents)) members.get(id)?.push(index);
  const nodes = new Map<string, GroupNode & { readonly children: GroupNode[] }>();
  const nearest = (id: string | null) => {
    for (const each of chainOf(id, parents)) if (nodes.has(each)) return nodes.get(each)!;
    return null;
  };
  const nesting = ({ groupId }: GroupManifest) => chainOf(groupId, parents).length;
  for (const group of [...kept].sort((a, b) => nesting(a) - nesting(b))) {
    const { groupId, retry } = group;
    const own = members.get(groupId)!;
    const parent = nearest(group.parent);
    const scope = retry ? (graph.scopes.get(retry.map ?? "") ?? null) : (parent?.scope ?? null);
    const scopes = new Set(own.flatMap((index) => graph.scopeOf(index)?.chain ?? []));
    const depth = scope?.depth ?? 0;
    const node = {
      id: groupId,
      index: nodes.size,
      parent,
      children: [],
      retries: retry?.retries ?? 0,
      delayMs: retry?.delayMs ?? 0,
      manifest: group,
      members: new Set(own),
      leaves: runLeaves(graph.order, graph.downstream, new Set(own)),
      scope,
      depth,
      scopes,
      maps: [...scopes].filter((each) => each.depth === depth + 1),
    };
    parent?.children.push(node);
    nodes.set(groupId, node);
  }
  return { all: [...nodes.values()], of: ({ group }) => nearest(group) };
}

/** null: no edge of the task is covered. */
export function coversOf(
  group: GroupNode | null,
  edges: {
    readonly downstream: readonly number[];
    readonly guards: readonly { readonly index: number }[];
    readonly feeds: readonly { readonly scope: Scope }[];
  },
): Covers | null {
  if (group === null || outermost(group, () => true) === null) return null;
  const coverOf = (indexes: readonly number[]) =>
    outermost(group, ({ members }) => indexes.some((index) => !members.has(index)));
  return {
    downstream: edges.downstream.map((index) => coverOf([index])),
    guards: edges.guards.map(({ index }) => coverOf([index])),
    feeds: edges.feeds.map(({ scope }) => coverOf(scope.members)),
  };
}

/** The outermost matching group with retries, from a group outwards. */
function outermost(group: GroupNode, isMeant: (group: GroupNode) => boolean): GroupNode | null {
  let found: GroupNode | null = null;
  for (let each: GroupNode | null = group; each !== null; each = each.parent)
    if (each.retries > 0 && isMeant(each)) found = each;
  return found;
}

/** The group and its enclosing groups, innermost first. */
function chainOf(id: string | null, parents: ReadonlyMap<string, string | null>): string[] {
  const chain: string[] = [];
  for (let each: string | null | undefined = id; each; each = parents.get(each)) chain.push(each);
  return chain;
}

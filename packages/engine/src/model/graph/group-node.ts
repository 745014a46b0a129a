/**
 * Groups as the model sees them: only those with retries, callbacks or notices, for all others are but names. One with retries is a
 * unit of work: to what is outside of it, none of its tasks has ended before the whole group has ended for good. So each
 * edge that leaves such a group is covered by it: by the outermost one, if it leaves several. A group with retries that is
 * mapped, or lies in a map, is one such unit per item.
 */
import type { DagManifest, GroupManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { runLeaves } from "../run/leaves.ts";
import type { Scope } from "./scope.ts";

export interface GroupNode {
  readonly id: string;
  /** Position among the groups of the graph; one inside of others has a greater one. */
  readonly index: number;
  /** The next one around it, of those in the graph. */
  readonly parent: GroupNode | null;
  readonly children: readonly GroupNode[];
  /** How many times it runs again. */
  readonly retries: number;
  readonly delayMs: number;
  readonly manifest: GroupManifest;
  /** Tasks in it and in groups inside it, by the index of their nodes, in topological order. */
  readonly members: ReadonlySet<number>;
  /** Those whose ends decide how the group has ended. */
  readonly leaves: ReadonlySet<number>;
  /** It is one unit of work per item of this map: the group, or one around it, is mapped and has retries. */
  readonly scope: Scope | null;
  /** How many maps that is in, itself included; 0: it is one unit for all. */
  readonly depth: number;
  /** The maps that its tasks are in, and those of them that are in `scope` directly. */
  readonly scopes: ReadonlySet<Scope>;
  readonly maps: readonly Scope[];
}

/** Of each edge of a task, in the order of its node: the group that covers it. */
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

/** The groups of a graph, parents first, and which of them is the innermost around a task. */
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

/** null: none of its edges is covered. */
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

/** Of a group with retries and those around it. */
function outermost(group: GroupNode, isMeant: (group: GroupNode) => boolean): GroupNode | null {
  let found: GroupNode | null = null;
  for (let each: GroupNode | null = group; each !== null; each = each.parent)
    if (each.retries > 0 && isMeant(each)) found = each;
  return found;
}

/** From a group on outwards. */
function chainOf(id: string | null, parents: ReadonlyMap<string, string | null>): string[] {
  const chain: string[] = [];
  for (let each: string | null | undefined = id; each; each = parents.get(each)) chain.push(each);
  return chain;
}

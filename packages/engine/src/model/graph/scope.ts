/**
 * Maps in the model. A map is a scope: its tasks exist once per item, and scopes nest. An item is identified by its ordinal,
 * which is unique within its scope and run. In an outermost scope the ordinal is the index of the item. In an inner scope
 * the ordinals of each expansion follow those of earlier expansions.
 *
 * The level of an edge from U to D is the number of scopes that both share: an instance of D depends on the instances of U
 * in the same items of these scopes. So an edge within a scope joins instances item by item, an edge that leaves a scope
 * gathers them, and an edge that enters a scope fans out.
 */
import type { DagManifest, MapLabel, MapManifest, MapSource } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";

export interface Scope {
  readonly id: string;
  /** Position among the scopes of the graph; a parent has a smaller index. */
  readonly index: number;
  readonly parent: Scope | null;
  /** From the outermost scope to this one. */
  readonly chain: readonly Scope[];
  /** 1 for an outermost scope. */
  readonly depth: number;
  readonly over: MapSource;
  readonly limit: number | null;
  /** How its items are named; null: by index. */
  readonly label: MapLabel | null;
  /** The scope or an enclosing scope has a label. */
  readonly isLabelled: boolean;
  readonly children: readonly Scope[];
  /** Tasks in the scope or an inner scope, by node index, in topological order. */
  readonly members: readonly number[];
  /** Tasks whose outputs the map runs over, by node index. */
  readonly sources: readonly number[];
}

interface Draft extends Scope {
  readonly children: Draft[];
  readonly chain: Scope[];
  members: number[];
  sources: number[];
}

/** `order`: the tasks in topological order. */
export function compileScopes(
  manifest: Pick<DagManifest, "dagId" | "maps">,
  order: readonly { readonly taskId: string; readonly map?: string }[],
): Map<string, Scope> {
  const scopes = new Map<string, Draft>();
  for (const map of manifest.maps ?? []) scopes.set(map.mapId, draft(manifest.dagId, map, scopes));
  if (scopes.size === 0) return scopes;
  const indexById = new Map(order.map(({ taskId }, index) => [taskId, index]));
  for (const [index, { taskId, map }] of order.entries()) {
    if (map === undefined) continue;
    const scope = scopes.get(map);
    if (!scope) throw unknownMap(manifest.dagId, taskId, map);
    for (const around of scope.chain) (around as Draft).members.push(index);
  }
  for (const scope of scopes.values()) {
    for (const taskId of sourceTasks(scope.over)) {
      const index = indexById.get(taskId);
      if (index === undefined) throw unknownMap(manifest.dagId, scope.id, taskId);
      scope.sources.push(index);
    }
  }
  return scopes;
}

function draft(dagId: string, map: MapManifest, known: ReadonlyMap<string, Draft>): Draft {
  const parent = map.parent === null ? null : known.get(map.parent);
  if (parent === undefined) throw unknownMap(dagId, map.mapId, map.parent ?? "");
  const scope: Draft = {
    id: map.mapId,
    index: known.size,
    parent,
    chain: [...(parent?.chain ?? [])],
    depth: (parent?.depth ?? 0) + 1,
    over: map.over,
    limit: map.limit,
    label: map.label ?? null,
    isLabelled: map.label !== undefined || parent?.isLabelled === true,
    children: [],
    members: [],
    sources: [],
  };
  scope.chain.push(scope);
  parent?.children.push(scope);
  return scope;
}

/** The source tasks of a list, each once. */
export function sourceTasks(over: MapSource): Set<string> {
  switch (over.kind) {
    case "output":
      return new Set([over.taskId]);
    case "zip":
    case "cross":
      return new Set(over.of.flatMap((source) => [...sourceTasks(source)]));
    default:
      return new Set();
  }
}

/** Whether a task is in a map that runs over the output of another task. */
export function isMappedOver(
  { scope }: { readonly scope: Scope | null },
  { feeds }: { readonly feeds: readonly { readonly scope: Scope }[] },
): boolean {
  return feeds.some((feed) => scope?.chain.includes(feed.scope));
}

/** The number of scopes that two tasks share. */
export function commonDepth(a: Scope | null, b: Scope | null): number {
  if (a === null || b === null) return 0;
  const most = Math.min(a.depth, b.depth);
  let depth = 0;
  while (depth < most && a.chain[depth] === b.chain[depth]) depth++;
  return depth;
}

/**
 * The map index of the stand-in of a task whose scope at `level` + 1 is not expanded yet, within an item of the scope at
 * `level`. The stand-in represents all instances to be created there. -1 for level 0; unique negative numbers for other
 * levels.
 */
export function unexpandedIndex(depth: number, level: number, ordinal: number): number {
  return level === 0 ? -1 : -(2 + ordinal * (depth - 1) + (level - 1));
}

/** The inverse of `unexpandedIndex`. */
export function unexpandedAt(depth: number, mapIndex: number): { level: number; ordinal: number } {
  if (mapIndex === -1) return { level: 0, ordinal: -1 };
  const rest = -mapIndex - 2;
  return { level: (rest % (depth - 1)) + 1, ordinal: Math.floor(rest / (depth - 1)) };
}

function unknownMap(dagId: string, what: string, name: string): ModelError {
  return new ModelError(
    "GRAPH_UNKNOWN_MAP",
    `"${what}" of DAG "${dagId}" refers to unknown "${name}". Load the file again.`,
  );
}

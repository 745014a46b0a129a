/**
 * Maps as the model sees them. A map is a scope: what is in it exists once per item, and scopes nest. An item of a
 * scope is known by its ordinal, which is unique within scope and run, whatever it lies in: of an outermost scope it is
 * the item's index, of an inner one the indexes of each expansion follow those of the expansions before.
 *
 * Of an edge from U to D counts how many scopes the two have in common, its level: an instance of D depends on those
 * instances of U that lie in the same items of these. So an edge within a scope joins instances item by item, one that
 * leaves a scope gathers, one that enters a scope spreads.
 */
import type { DagManifest, MapLabel, MapManifest, MapSource } from "@tradewind/sdk/manifest";
import { ModelError } from "../run/errors.ts";

export interface Scope {
  readonly id: string;
  /** Position among the scopes of the graph; a parent has a smaller one. */
  readonly index: number;
  readonly parent: Scope | null;
  /** From the outermost scope to this one. */
  readonly chain: readonly Scope[];
  /** 1 for an outermost one. */
  readonly depth: number;
  readonly over: MapSource;
  readonly limit: number | null;
  /** What its items are called; null: by their index. */
  readonly label: MapLabel | null;
  /** It or a scope around it has a label. */
  readonly isLabelled: boolean;
  readonly children: readonly Scope[];
  /** Tasks in it or in a scope inside it, by the index of their nodes, in topological order. */
  readonly members: readonly number[];
  /** Tasks whose outputs it runs over, by the index of their nodes. */
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

/** The tasks whose outputs a list is made of, each once. */
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

/** Whether a task is in a map that runs over the output of another one. */
export function isMappedOver(
  { scope }: { readonly scope: Scope | null },
  { feeds }: { readonly feeds: readonly { readonly scope: Scope }[] },
): boolean {
  return feeds.some((feed) => scope?.chain.includes(feed.scope));
}

/** How many scopes two tasks have in common. */
export function commonDepth(a: Scope | null, b: Scope | null): number {
  if (a === null || b === null) return 0;
  const most = Math.min(a.depth, b.depth);
  let depth = 0;
  while (depth < most && a.chain[depth] === b.chain[depth]) depth++;
  return depth;
}

/**
 * The map index of a task whose scope at `level` + 1 is not expanded yet, beneath an item of the one at `level`. It
 * stands for all instances that are to come there. -1 for level 0; below that, so that no two are the same.
 */
export function unexpandedIndex(depth: number, level: number, ordinal: number): number {
  return level === 0 ? -1 : -(2 + ordinal * (depth - 1) + (level - 1));
}

/** The opposite of it. */
export function unexpandedAt(depth: number, mapIndex: number): { level: number; ordinal: number } {
  if (mapIndex === -1) return { level: 0, ordinal: -1 };
  const rest = -mapIndex - 2;
  return { level: (rest % (depth - 1)) + 1, ordinal: Math.floor(rest / (depth - 1)) };
}

function unknownMap(dagId: string, what: string, name: string): ModelError {
  return new ModelError(
    "GRAPH_UNKNOWN_MAP",
    `"${what}" of DAG "${dagId}" names "${name}", which it does not have. Load the file again.`,
  );
}

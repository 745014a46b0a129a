/** The failure that is the root cause of an instance in `upstream_failed`. */
import { isEarlier } from "../run/first-failure.ts";
import type { Graph, TaskNode } from "./graph.ts";
import { commonDepth } from "./scope.ts";

export interface FailedPlace {
  readonly taskId: string;
  readonly mapIndex: number;
  /** Its index in each enclosing list, outermost first; null: it is not mapped. */
  readonly path: readonly number[] | null;
  readonly endedAt: number | null;
}

/**
 * Walks upstream over tasks that are upstream_failed themselves, to tasks that failed. Of several failures it takes the
 * earliest, and of a map the one in the same item, as far as both tasks have maps in common.
 */
export class FailedUpstream {
  readonly #graph: Graph;
  /** Failed instances by node index. */
  readonly #failed = new Map<number, FailedPlace[]>();
  readonly #implied: ReadonlySet<string>;
  readonly #before: ReadonlyMap<number, ReadonlySet<number>>;
  readonly #reached = new Map<number, readonly number[]>();

  /** `implied`: the tasks with an instance in `upstream_failed`. */
  constructor(graph: Graph, failed: readonly FailedPlace[], implied: ReadonlySet<string>) {
    this.#graph = graph;
    this.#implied = implied;
    this.#before = predecessors(graph);
    for (const place of failed) {
      const node = graph.byId.get(place.taskId);
      if (node) this.#failed.set(node.index, [...(this.#failed.get(node.index) ?? []), place]);
    }
  }

  /** null: no upstream task failed. */
  of({ path, taskId }: Pick<FailedPlace, "path" | "taskId">): FailedPlace | null {
    const node = this.#graph.byId.get(taskId);
    if (!node) return null;
    const reached = this.#failuresBefore(node).flatMap((index) =>
      this.#failed.get(index)!.map((place) => ({ ...place, place, node: this.#graph.nodes[index]! })),
    );
    const inItem = reached.filter((each) => isSameItem(node, path ?? [], each));
    const first = (inItem.length > 0 ? inItem : reached).reduce<(typeof reached)[number] | undefined>(
      (best, each) => (best === undefined || isEarlier(each, best) ? each : best),
      undefined,
    );
    return first?.place ?? null;
  }

  #failuresBefore(node: TaskNode): readonly number[] {
    const known = this.#reached.get(node.index);
    if (known) return known;
    const seen = new Set<number>();
    const found: number[] = [];
    const open = [...(this.#before.get(node.index) ?? [])];
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      if (seen.has(index)) continue;
      seen.add(index);
      if (this.#failed.has(index)) found.push(index);
      if (this.#implied.has(this.#graph.nodes[index]!.id)) open.push(...(this.#before.get(index) ?? []));
    }
    this.#reached.set(node.index, found);
    return found;
  }
}

/** Everything that can fail a task: its upstream, the setups whose scope it is in, and the sources of the maps around it. */
function predecessors({ nodes }: Graph): Map<number, Set<number>> {
  const before = new Map(nodes.map((node) => [node.index, new Set(node.upstream)]));
  for (const node of nodes) {
    for (const { index } of node.guards) before.get(index)!.add(node.index);
    for (const scope of node.scope?.chain ?? [])
      for (const source of scope.sources) before.get(node.index)!.add(source);
  }
  return before;
}

function isSameItem(
  node: TaskNode,
  path: readonly number[],
  other: { readonly node: TaskNode; readonly path: readonly number[] | null },
): boolean {
  const theirs = other.path ?? [];
  const depth = Math.min(commonDepth(node.scope, other.node.scope), path.length, theirs.length);
  return path.slice(0, depth).every((index, level) => index === theirs[level]);
}

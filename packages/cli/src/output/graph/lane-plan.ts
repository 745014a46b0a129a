/** Assigns a lane to each edge, and orders the tasks so that few lanes are open at once. */
import type { GraphNode } from "./dag-graph.ts";

/** A task on its lane. */
export interface LaneRow {
  readonly node: GraphNode;
  readonly at: number;
  /** Incoming and outgoing lanes. */
  readonly from: readonly number[];
  readonly to: readonly number[];
  /** Open lanes before and after the task. */
  readonly above: readonly boolean[];
  readonly below: readonly boolean[];
}

/** null if more than `mostLanes` lanes would be open at once. */
export function planLanes(nodes: readonly GraphNode[], mostLanes: number): LaneRow[] | null {
  const plan = new LanePlan(nodes);
  const rows: LaneRow[] = [];
  while (rows.length < nodes.length) {
    const row = plan.place();
    if (row.at >= mostLanes || row.below.length > mostLanes) return null;
    rows.push(row);
  }
  return rows;
}

/** Edges that share a lane: all out of one task, or all into one. */
interface Bundle {
  lane: number | null;
  /** Edges whose target is not placed yet. */
  unended: number;
}

interface Edges {
  readonly into: Set<Bundle>;
  readonly outOf: Set<Bundle>;
}

class LanePlan {
  readonly #edges = new Map<string, Edges>();
  readonly #downstream = new Map<string, GraphNode[]>();
  readonly #missing = new Map<string, number>();
  /** Tasks whose upstream is placed; the latest last. */
  readonly #ready: GraphNode[] = [];
  readonly #lanes: (Bundle | null)[] = [];

  constructor(nodes: readonly GraphNode[]) {
    for (const node of nodes) {
      this.#edges.set(node.id, { into: new Set(), outOf: new Set() });
      this.#missing.set(node.id, node.upstream.length);
      if (node.upstream.length === 0) this.#ready.unshift(node);
      for (const up of node.upstream) this.#downstream.set(up, [...(this.#downstream.get(up) ?? []), node]);
    }
    this.#bundle(nodes);
  }

  #bundle(nodes: readonly GraphNode[]): void {
    const bundles = new Map<string, Bundle>();
    for (const node of nodes) {
      for (const up of node.upstream) {
        const outDegree = this.#downstream.get(up)?.length ?? 0;
        const inDegree = node.upstream.length;
        const isOut = outDegree > 1 && (inDegree === 1 || outDegree >= inDegree);
        const name = isOut ? `out ${up}` : `in ${node.id}`;
        const bundle = bundles.get(name) ?? { lane: null, unended: 0 };
        bundles.set(name, bundle);
        bundle.unended++;
        this.#edges.get(up)?.outOf.add(bundle);
        this.#edges.get(node.id)?.into.add(bundle);
      }
    }
  }

  place(): LaneRow {
    const node = this.#nextNode();
    const { into, outOf } = this.#edges.get(node.id)!;
    const above = this.#open();
    const from = [...into].map((bundle) => bundle.lane!);
    const ended = [...into].filter((bundle) => this.#endsAt(bundle, node));
    this.#pass(node);
    const at =
      ended.length > 0
        ? Math.min(...ended.map(({ lane }) => lane!))
        : this.#freeLane(from.length === 0 ? 0 : Math.min(...from) + 1);
    for (const { lane } of ended) this.#lanes[lane!] = null;
    for (const bundle of outOf) {
      if (bundle.lane !== null) continue;
      // Put the lane beside the tasks of a fan-out, not below the first of them: the others go between both lanes.
      const isBeside = ended.length === 0 && from.length > 0 && bundle.unended > 1 && outOf.size === 1;
      bundle.lane = this.#freeLane(isBeside && this.#isFanIn(bundle, node) ? at + 1 : at);
      this.#lanes[bundle.lane] = bundle;
    }
    while (this.#lanes.at(-1) === null) this.#lanes.pop();
    const to = [...outOf].map((bundle) => bundle.lane!);
    return { node, at, from, to, above, below: this.#open() };
  }

  /** The task that leaves the fewest lanes open; of several, the one closest to the task placed last. */
  #nextNode(): GraphNode {
    let best = this.#ready.length - 1;
    let least = Number.POSITIVE_INFINITY;
    for (let index = this.#ready.length - 1; index >= 0; index--) {
      const growth = this.#growth(this.#ready[index]!);
      if (growth < least) [best, least] = [index, growth];
    }
    const [node] = this.#ready.splice(best, 1);
    for (const down of [...(this.#downstream.get(node!.id) ?? [])].reverse()) {
      const missing = this.#missing.get(down.id)! - 1;
      this.#missing.set(down.id, missing);
      if (missing === 0) this.#ready.push(down);
    }
    return node!;
  }

  #growth(node: GraphNode): number {
    const { into, outOf } = this.#edges.get(node.id)!;
    const begun = [...outOf].filter(({ lane }) => lane === null).length;
    const ended = [...into].filter((bundle) => this.#endsAt(bundle, node)).length;
    return begun - ended;
  }

  /** It leads to a task with other upstream tasks. */
  #isFanIn(bundle: Bundle, node: GraphNode): boolean {
    return (this.#downstream.get(node.id) ?? []).some((down) => this.#sharedEdges(bundle, down) > 1);
  }

  #endsAt(bundle: Bundle, node: GraphNode): boolean {
    return bundle.unended === this.#sharedEdges(bundle, node);
  }

  /** The edges into this task that belong to this bundle. */
  #sharedEdges(bundle: Bundle, { upstream }: GraphNode): number {
    return upstream.filter((up) => this.#edges.get(up)?.outOf.has(bundle)).length;
  }

  #pass(node: GraphNode): void {
    for (const bundle of this.#edges.get(node.id)!.into) bundle.unended -= this.#sharedEdges(bundle, node);
  }

  #freeLane(from: number): number {
    let lane = from;
    while (this.#lanes[lane]) lane++;
    while (this.#lanes.length <= lane) this.#lanes.push(null);
    return lane;
  }

  #open(): boolean[] {
    return this.#lanes.map((bundle) => bundle !== null);
  }
}

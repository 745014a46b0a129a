/** A visible graph in the form of the layout library, and its answer as positions. Pure. */
import type { ElkNode, LayoutOptions } from "elkjs/lib/elk-api.js";
import { declaredOrder } from "./declared-order.ts";
import type { VisibleGraph, VisibleNode } from "./graph-model.ts";

export interface Box {
  /** Relative to the group around it. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export type Boxes = Readonly<Record<string, Box>>;
export type Direction = "RIGHT" | "DOWN";

const NODE_HEIGHT = 38;
const LEAST_WIDTH = 116;
const MOST_WIDTH = 280;

const OPTIONS = {
  "elk.algorithm": "layered",
  // Edges are drawn as curves. Lanes for each of them would only move the layers of a wide graph thousands of pixels apart.
  "elk.layered.spacing.edgeEdgeBetweenLayers": "0",
  "elk.layered.nodePlacement.strategy": "BRANDES_KOEPF",
  "elk.hierarchyHandling": "INCLUDE_CHILDREN",
  "elk.layered.spacing.nodeNodeBetweenLayers": "44",
  "elk.spacing.nodeNode": "16",
  "elk.layered.spacing.edgeNodeBetweenLayers": "16",
  "elk.spacing.componentComponent": "32",
} as const;
const GROUP_OPTIONS = { "elk.padding": "[top=40,left=14,bottom=14,right=14]" } as const;

/**
 * Few crossings first, then the declared order. ELK fails with it on nested graphs, and its time grows with the cube of the widest
 * layer: 4 s for 500 parallel tasks.
 */
const CROSSINGS_FIRST = { "elk.layered.considerModelOrder.strategy": "NODES_AND_EDGES" } as const;
const MOST_CROSSINGS_FIRST = 200;
/** The order of the given positions, also where edges cross. */
const FIXED_ORDER = { "elk.layered.crossingMinimization.semiInteractive": "true" } as const;

/** About the width of its label. */
function widthOf({ label, kind }: VisibleNode): number {
  const text = label.length * 7 + (kind === "collapsed" ? 110 : 44);
  return Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, text));
}

export function elkGraph(graph: VisibleGraph, direction: Direction): ElkNode {
  const { edges, nodes } = graph;
  const isFixed = nodes.length > MOST_CROSSINGS_FIRST || nodes.some(({ kind }) => kind === "open");
  const fixed = isFixed ? declaredOrder(graph) : null;
  const order = isFixed ? FIXED_ORDER : CROSSINGS_FIRST;
  const root: ElkNode = {
    id: "root",
    layoutOptions: { ...OPTIONS, ...order, "elk.direction": direction },
    children: [],
    edges: edges.map(({ from, to }, index) => ({ id: `e${index}`, sources: [from], targets: [to] })),
  };
  const made = new Map<string, ElkNode>();
  for (const node of nodes) {
    const at = fixed?.get(node.key);
    const layoutOptions: LayoutOptions = at === undefined ? {} : { "elk.position": `(${at},${at})` };
    const elk: ElkNode =
      node.kind === "open"
        ? { id: node.key, layoutOptions: { ...GROUP_OPTIONS, ...order, ...layoutOptions }, children: [] }
        : { id: node.key, layoutOptions, width: widthOf(node), height: NODE_HEIGHT };
    made.set(node.key, elk);
    const parent = node.parent === null ? root : made.get(node.parent)!;
    parent.children!.push(elk);
  }
  return root;
}

export function boxesOf(laidOut: ElkNode): Boxes {
  const boxes: Record<string, Box> = {};
  const add = (node: ElkNode) => {
    for (const child of node.children ?? []) {
      const { height = 0, id, width = 0, x = 0, y = 0 } = child;
      boxes[id] = { x, y, width, height };
      add(child);
    }
  };
  add(laidOut);
  return boxes;
}

/** Of the same structure the same name: the key of the cache. */
export function structureHash(graph: ElkNode): string {
  const text = JSON.stringify(graph);
  // FNV-1a with 2 times 32 bits: pages without a secure context have no crypto.subtle.
  let [one, two] = [0x811c9dc5, 0x01000193];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    one = Math.imul(one ^ code, 0x01000193);
    two = Math.imul(two ^ code, 0x85ebca6b);
  }
  return `${(one >>> 0).toString(36)}-${(two >>> 0).toString(36)}-${text.length}`;
}

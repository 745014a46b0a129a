/** Positions of tasks, groups and edges in an image: layers from left to right, by dagre. */
import { type DagGraph, type GraphNode, groupsOf } from "./dag-graph.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

interface Box extends Size {
  readonly left: number;
  readonly top: number;
}

interface Layout extends Size {
  /** The highest point; at most 0. */
  readonly top: number;
  readonly nodes: readonly { readonly node: GraphNode; readonly box: Box }[];
  readonly groups: readonly { readonly id: string; readonly box: Box }[];
  readonly edges: readonly {
    readonly from: GraphNode;
    readonly to: GraphNode;
    readonly points: readonly Point[];
  }[];
}

/** Space for the name of a group above its contents. */
const GROUP_TITLE = 14;

/** A task and a group may have the same id. */
const groupKey = (id: string) => `group ${id}`;

/** With a box around each group, unless many groups depend on each other in both directions. */
export async function layOut(graph: DagGraph, sizeOf: Picture["sizeOf"]): Promise<Layout> {
  if (graph.nodes.length === 0) return { top: 0, width: 0, height: 0, nodes: [], groups: [], edges: [] };
  const dagre = await import("@dagrejs/dagre");
  try {
    return withTitles(place(dagre, { graph, groups: groupsOf(graph), sizeOf }), graph);
  } catch {
    // dagre cannot route some edges between many such groups. Ids contain the names of their groups.
  }
  return place(dagre, { graph, groups: [], sizeOf });
}

interface Picture {
  readonly graph: DagGraph;
  readonly groups: ReturnType<typeof groupsOf>;
  readonly sizeOf: (node: GraphNode, isBoxed: boolean) => Size;
}

function place(
  { Graph, layout }: typeof import("@dagrejs/dagre"),
  { graph, groups, sizeOf }: Picture,
): Layout {
  const drawn = new Graph({ compound: true });
  drawn.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 44, edgesep: 10 });
  drawn.setDefaultEdgeLabel(() => ({}));
  for (const { id } of groups) drawn.setNode(groupKey(id), { width: 0, height: 0 });
  for (const node of graph.nodes) drawn.setNode(node.id, { ...sizeOf(node, groups.length > 0) });
  for (const { id, parent } of groups) if (parent !== null) drawn.setParent(groupKey(id), groupKey(parent));
  for (const { groups: around, id } of groups.length === 0 ? [] : graph.nodes) {
    const innermost = around.at(-1);
    if (innermost !== undefined) drawn.setParent(id, groupKey(innermost));
  }
  for (const { id, upstream } of graph.nodes) for (const up of upstream) drawn.setEdge(up, id);
  layout(drawn);
  const boxOf = (key: string): Box => {
    const { height, width, x, y } = drawn.node(key) as Size & Point;
    return { left: x - width / 2, top: y - height / 2, width, height };
  };
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const { height = 0, width = 0 } = drawn.graph() as Partial<Size>;
  return {
    top: 0,
    width,
    height,
    nodes: graph.nodes.map((node) => ({ node, box: boxOf(node.id) })),
    groups: groups.map(({ id }) => ({ id, box: boxOf(groupKey(id)) })),
    edges: (drawn.edges() as readonly { v: string; w: string }[]).map((edge) => ({
      from: byId.get(edge.v)!,
      to: byId.get(edge.w)!,
      points: (drawn.edge(edge) as { points: Point[] }).points,
    })),
  };
}

function withTitles(laidOut: Layout, graph: DagGraph): Layout {
  const titles = titleLines(groupsOf(graph));
  const groups = laidOut.groups.map(({ box, id }) => {
    const room = GROUP_TITLE * titles.get(id)!;
    return { id, box: { ...box, top: box.top - room, height: box.height + room } };
  });
  return { ...laidOut, groups, top: Math.min(0, ...groups.map(({ box }) => box.top)) };
}

/** Number of title lines at the top of a group: its own, and those of nested groups. */
function titleLines(groups: ReturnType<typeof groupsOf>): ReadonlyMap<string, number> {
  const lines = new Map(groups.map(({ id }) => [id, 1]));
  for (const { id, parent } of [...groups].reverse())
    if (parent !== null) lines.set(parent, Math.max(lines.get(parent)!, lines.get(id)! + 1));
  return lines;
}

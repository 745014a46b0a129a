import { expect, it } from "vitest";
import type { VisibleGraph } from "./graph-model.ts";
import { aroundNode, wholeGraph } from "./viewport.ts";

const node = (key: string, parent: string | null = null) => ({
  ...{ key, id: key, kind: "task" as const, parent, label: key, places: [] },
});
const graph: VisibleGraph = { nodes: [node("g"), node("a", "g"), node("b")], edges: [] };
const boxes = {
  g: { x: 0, y: 0, width: 100, height: 80 },
  a: { x: 10, y: 20, width: 40, height: 20 },
  b: { x: 900, y: 0, width: 100, height: 80 },
};

it("centres the whole graph, at most at its own size", () => {
  const small = wholeGraph(graph, boxes, { width: 548, height: 400 })!;
  expect(small).toEqual({ x: 24, y: 180, zoom: 0.5 });
  expect(wholeGraph(graph, boxes, { width: 5_000, height: 800 })!.zoom).toBe(1);
  expect(wholeGraph(graph, boxes, { width: 200, height: 800 })).toBeNull();
});

it("begins at the edges of the graph when its first node is there", () => {
  const size = { width: 200, height: 60 };
  expect(aroundNode(graph, boxes, size, "g")).toEqual({ x: 24, y: -2, zoom: 0.8 });
  expect(aroundNode(graph, boxes, size, "a")).toEqual({ x: 24, y: 6, zoom: 0.8 });
});

it("shows no empty space beyond the last node", () => {
  const view = aroundNode(graph, boxes, { width: 200, height: 60 }, "b")!;
  expect(view.x).toBeCloseTo(200 - 24 - 1_000 * 0.8);
});

it("centres a node that is far from all edges, also inside of a group", () => {
  const wide = {
    ...boxes,
    g: { x: 300, y: 200, width: 400, height: 80 },
    b: { x: 900, y: 400, width: 100, height: 80 },
  };
  const far = { ...wide, c: { x: 0, y: 0, width: 100, height: 80 } };
  const with3 = { ...graph, nodes: [...graph.nodes, node("c")] };
  const view = aroundNode(with3, far, { width: 200, height: 100 }, "a")!;
  expect(view.x + (300 + 10 + 20) * 0.8).toBeCloseTo(100);
  expect(view.y + (200 + 20 + 10) * 0.8).toBeCloseTo(50);
});

it("centres a graph along the axis where it fits", () => {
  expect(aroundNode(graph, boxes, { width: 200, height: 400 }, "g")!.y).toBeCloseTo(200 - 40 * 0.8);
});

it("has no view of an unknown node", () => {
  expect(aroundNode(graph, boxes, { width: 200, height: 100 }, "x")).toBeNull();
});

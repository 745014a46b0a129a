import { expect, it } from "vitest";
import type { VisibleGraph } from "./graph-model.ts";
import { nodeInMiddle, wholeGraph } from "./viewport.ts";

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

it("centres a node inside of a group", () => {
  expect(nodeInMiddle(graph, boxes, { width: 200, height: 100 }, "a")).toEqual({ x: 76, y: 26, zoom: 0.8 });
  expect(nodeInMiddle(graph, boxes, { width: 200, height: 100 }, "x")).toBeNull();
});

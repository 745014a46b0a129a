import ELK from "elkjs/lib/elk.bundled.js";
import { describe, expect, it } from "vitest";
import { boxesOf, elkGraph } from "./elk-graph.ts";
import type { VisibleGraph } from "./graph-model.ts";

type Edge = readonly [from: number, to: number];

const graphOf = (count: number, edges: readonly Edge[], group: string | null = null): VisibleGraph => ({
  nodes: [
    ...(group === null
      ? []
      : [{ key: group, id: group, kind: "open" as const, parent: null, label: group, places: [] }]),
    ...Array.from({ length: count }, (_, index) => ({
      ...{ key: `t ${index}`, id: `${index}`, kind: "task" as const, parent: group },
      ...{ label: `task_${index}`, places: [index] },
    })),
  ],
  edges: edges.map(([from, to]) => ({ from: `t ${from}`, to: `t ${to}` })),
});

const chains = (count: number, length: number) =>
  Array.from({ length: count }, (_, index): Edge => [index - 1, index]).filter(([, to]) => to % length > 0);
const fan = (count: number) =>
  Array.from({ length: count - 2 }, (_, index): Edge[] => [
    [0, index + 1],
    [index + 1, count - 1],
  ]).flat();

/** Tasks of each layer from its first to its last position. */
async function layers(graph: VisibleGraph, direction: "RIGHT" | "DOWN" = "RIGHT"): Promise<number[][]> {
  const boxes = boxesOf(await new ELK().layout(elkGraph(graph, direction)));
  const [along, across] = direction === "RIGHT" ? (["x", "y"] as const) : (["y", "x"] as const);
  const byStart = new Map<number, { at: number; task: number }[]>();
  for (const { id, key, kind } of graph.nodes) {
    if (kind === "open") continue;
    const box = boxes[key]!;
    // Nodes of a layer are aligned at their centres.
    const middle = Math.round(box[along] + (along === "x" ? box.width : box.height) / 2);
    byStart.set(middle, [...(byStart.get(middle) ?? []), { at: box[across], task: Number(id) }]);
  }
  return [...byStart]
    .toSorted(([a], [b]) => a - b)
    .map(([, tasks]) => tasks.toSorted((a, b) => a.at - b.at).map(({ task }) => task));
}

const sorted = (lists: readonly (readonly number[])[]) => lists.map((list) => list.toSorted((a, b) => a - b));

describe.each([
  ["few", 60],
  ["many", 300],
])("a graph of %s tasks", (_, count) => {
  it.each(["RIGHT", "DOWN"] as const)("has its chains in the declared order, %s", async (direction) => {
    const found = await layers(graphOf(count, chains(count, 10)), direction);
    expect(found).toHaveLength(10);
    expect(found).toEqual(sorted(found));
  });

  it("has parallel tasks in the declared order", async () => {
    const found = await layers(graphOf(count, fan(count)));
    expect(found.map(({ length }) => length)).toEqual([1, count - 2, 1]);
    expect(found).toEqual(sorted(found));
  });

  it("has the tasks of a group in the declared order", async () => {
    const found = await layers(graphOf(count, chains(count, 10), "g"));
    expect(found).toHaveLength(10);
    expect(found).toEqual(sorted(found));
  });

  it("departs from the declared order where edges would cross", async () => {
    const half = count / 2;
    const edges = Array.from({ length: half }, (_, index): Edge => [index, count - 1 - index]);
    const [left, right] = await layers(graphOf(count, edges));
    expect(right).toEqual(left!.map((task) => count - 1 - task));
  });
});

it("lays out a graph of many nodes with a cycle", async () => {
  const found = await layers(graphOf(300, [...chains(300, 10), [9, 0]]));
  expect(found.flat()).toHaveLength(300);
});

it("does not move layers apart for many edges between them", async () => {
  const boxes = boxesOf(await new ELK().layout(elkGraph(graphOf(300, fan(300)), "RIGHT")));
  expect(boxes["t 1"]!.x - boxes["t 0"]!.x).toBeLessThan(300);
});

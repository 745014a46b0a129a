import { expect, it } from "vitest";
import { groupsToCollapse, type Structure, visibleGraph } from "./graph-model.ts";

const task = (task_id: string, group: string | null = null) => ({
  ...{ task_id, group, operator: "task", is_mapped: false },
});
const structure: Structure = {
  tasks: [
    task("start"),
    task("etl.in.a", "etl.in"),
    task("etl.in.b", "etl.in"),
    task("etl.load", "etl"),
    task("end"),
  ],
  groups: [
    { group_id: "etl", parent: null },
    { group_id: "etl.in", parent: "etl" },
  ],
  edges: { from: [0, 0, 1, 2, 3, 0], to: [1, 2, 3, 3, 4, 4] },
};
const shown = (...collapsed: string[]) => {
  const { edges, nodes } = visibleGraph(structure, new Set(collapsed));
  return {
    nodes: nodes.map(({ key, kind, parent }) => `${parent ?? "-"} > ${key} ${kind}`),
    edges: edges.map(({ from, to }) => `${from} > ${to}`),
  };
};

it("nests groups, each before what is in it", () => {
  expect(shown()).toEqual({
    nodes: [
      "- > t start task",
      "- > g etl open",
      "g etl > g etl.in open",
      "g etl.in > t etl.in.a task",
      "g etl.in > t etl.in.b task",
      "g etl > t etl.load task",
      "- > t end task",
    ],
    edges: [
      "t start > t etl.in.a",
      "t start > t etl.in.b",
      "t etl.in.a > t etl.load",
      "t etl.in.b > t etl.load",
      "t etl.load > t end",
      "t start > t end",
    ],
  });
});

it("joins the edges of a collapsed group", () => {
  expect(shown("etl.in").edges).toEqual([
    "t start > g etl.in",
    "g etl.in > t etl.load",
    "t etl.load > t end",
    "t start > t end",
  ]);
  expect(shown("etl")).toEqual({
    nodes: ["- > t start task", "- > g etl collapsed", "- > t end task"],
    edges: ["t start > g etl", "g etl > t end", "t start > t end"],
  });
});

it("knows all tasks inside a group", () => {
  const { nodes } = visibleGraph(structure, new Set(["etl"]));
  expect(nodes.find(({ id }) => id === "etl")!.places).toEqual([1, 2, 3]);
});

it("collapses groups of a large graph, but none that a user has opened", () => {
  const none = new Set<string>();
  expect([...groupsToCollapse(structure, none, none, 7)]).toEqual([]);
  expect([...groupsToCollapse(structure, none, none, 6)]).toEqual(["etl"]);
  expect([...groupsToCollapse(structure, none, new Set(["etl"]), 6)]).toEqual([]);
});

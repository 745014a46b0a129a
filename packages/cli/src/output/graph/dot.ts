/** A DAG in Graphviz syntax. */
import { type DagGraph, type GraphNode, groupsOf, labelInGroup } from "./dag-graph.ts";

const STYLES: Readonly<Record<GraphNode["kind"], string>> = {
  task: "",
  branch: ", shape=diamond, style=filled",
  setup: ", shape=trapezium, style=filled",
  teardown: ", shape=invtrapezium, style=filled",
};

export function dotText(graph: DagGraph): string {
  const groups = groupsOf(graph);
  const clusters = new Map(groups.map(({ id }, index) => [id, `cluster_${index}`]));
  const inside = (group: string | null, indent: string): string[] => [
    ...graph.nodes
      .filter((node) => (node.groups.at(-1) ?? null) === group)
      .map((node) => `${indent}${quoted(node.id)} [label=${quoted(labelInGroup(node))}${styleOf(node)}];`),
    ...groups
      .filter(({ parent }) => parent === group)
      .flatMap(({ id }) => [
        `${indent}subgraph ${clusters.get(id)} {`,
        `${indent}  label=${quoted(id)};`,
        ...inside(id, `${indent}  `),
        `${indent}}`,
      ]),
  ];
  const edges = graph.nodes.flatMap(({ id, setup, upstream }) =>
    upstream.map((up) => `  ${quoted(up)} -> ${quoted(id)}${up === setup ? " [style=dashed]" : ""};`),
  );
  return [
    `digraph ${quoted(graph.dagId)} {`,
    "  rankdir=LR;",
    '  graph [fontname="Helvetica", style="rounded", color="#94a3b8"];',
    '  node [fontname="Helvetica", shape=box, style="rounded,filled", color="#475569", fillcolor="#f1f5f9"];',
    '  edge [color="#64748b", arrowsize=0.7];',
    ...inside(null, "  "),
    ...edges,
    "}",
  ].join("\n");
}

/** A mapped task has a second border. */
function styleOf({ isMapped, kind }: GraphNode): string {
  return `${STYLES[kind]}${isMapped ? ", peripheries=2" : ""}`;
}

/** Ids contain no quotes or backslashes. */
function quoted(id: string): string {
  return `"${id}"`;
}

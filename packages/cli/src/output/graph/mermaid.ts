/** A DAG as a Mermaid flowchart: GitHub, GitLab and many wikis draw it. */
import { type DagGraph, type GraphNode, groupsOf, labelInGroup } from "./dag-graph.ts";

const SHAPES: Readonly<Record<GraphNode["kind"], readonly [string, string]>> = {
  task: ["(", ")"],
  branch: ["{", "}"],
  setup: ["[/", "\\]"],
  teardown: ["[\\", "/]"],
};
const MAPPED = ["[[", "]]"] as const;

export function mermaidText(graph: DagGraph): string {
  // Words such as "end" and "default" cannot be node ids.
  const ids = new Map(graph.nodes.map(({ id }, index) => [id, `t${index}`]));
  const groups = groupsOf(graph);
  const groupIds = new Map(groups.map(({ id }, index) => [id, `g${index}`]));
  const inside = (group: string | null, indent: string): string[] => [
    ...graph.nodes
      .filter((node) => (node.groups.at(-1) ?? null) === group)
      .map((node) => `${indent}${ids.get(node.id)}${shape(node)}`),
    ...groups
      .filter(({ parent }) => parent === group)
      .flatMap(({ id }) => [
        `${indent}subgraph ${groupIds.get(id)}[${quoted(id)}]`,
        ...inside(id, `${indent}  `),
        `${indent}end`,
      ]),
  ];
  const edges = graph.nodes.flatMap(({ id, setup, upstream }) =>
    upstream.map((up) => `  ${ids.get(up)} ${up === setup ? "-.->" : "-->"} ${ids.get(id)}`),
  );
  return [
    "---",
    `title: ${quoted(graph.dagId)}`,
    "---",
    "flowchart LR",
    ...inside(null, "  "),
    ...edges,
  ].join("\n");
}

function shape(node: GraphNode): string {
  const [open, close] = node.isMapped && node.kind === "task" ? MAPPED : SHAPES[node.kind];
  return `${open}${quoted(labelInGroup(node))}${close}`;
}

/** Ids contain no quotes or backslashes. */
function quoted(id: string): string {
  return `"${id}"`;
}

/** The tasks of a DAG on a terminal: a graph if it is readable, else level by level. */
import type { Task } from "../../client/resources.ts";
import type { Session } from "../../session.ts";
import { ruleName } from "../rule-name.ts";
import { type Column, renderTable } from "../table.ts";
import { type DagGraph, dagGraph, levelsOf, type NodeKind, nodeLabel } from "./dag-graph.ts";
import { drawLanes, MARKS } from "./lanes.ts";

/** Fits beside the names in 80 columns. */
const MOST_LANES = 12;
const MOST_DRAWN = 300;

export function printTaskTable({ terminal }: Session, dagId: string, tasks: readonly Task[]): void {
  const { legend, lines } = taskTable(dagId, tasks, terminal.width);
  const [head, ...rest] = lines;
  if (head === undefined) return;
  terminal.data(terminal.paint("bold", head));
  for (const line of rest) terminal.data(line);
  if (legend !== "") terminal.data(terminal.paint("dim", legend));
}

export function taskTable(
  dagId: string,
  tasks: readonly Task[],
  width: number | undefined,
): { readonly lines: readonly string[]; readonly legend: string } {
  if (tasks.length === 0) return { lines: [], legend: "" };
  const graph = dagGraph(dagId, tasks);
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  const drawn = graph.nodes.length > MOST_DRAWN ? null : drawLanes(graph.nodes, MOST_LANES);
  if (drawn === null) return { lines: levelTable(graph, byId, width), legend: "" };
  const rows = drawn.flatMap(({ connector, gutter, node }) => [
    { name: `${gutter} ${nodeLabel(node)}`, task: byId.get(node.id)! },
    ...(connector === null ? [] : [{ name: connector, task: null }]),
  ]);
  const columns: readonly Column<(typeof rows)[number]>[] = [
    { title: "TASK", value: ({ name }) => name },
    ...detailColumns<(typeof rows)[number]>(tasks, ({ task }) => task),
  ];
  return { lines: renderTable(rows, columns, width), legend: legendOf(graph) };
}

function levelTable(
  graph: DagGraph,
  byId: ReadonlyMap<string, Task>,
  width: number | undefined,
): readonly string[] {
  const levels = levelsOf(graph);
  const nodes = [...graph.nodes].sort((a, b) => levels.get(a.id)! - levels.get(b.id)!);
  const columns: readonly Column<(typeof nodes)[number]>[] = [
    { title: "LEVEL", value: ({ id }) => String(levels.get(id)! + 1), align: "right" },
    { title: "TASK", value: (node) => `${MARKS[node.kind]} ${nodeLabel(node)}` },
    { title: "AFTER", value: ({ upstream }) => upstream.join(", "), flexible: true },
    ...detailColumns<(typeof nodes)[number]>([...byId.values()], ({ id }) => byId.get(id)!),
  ];
  return renderTable(nodes, columns, width);
}

/** Rules and pools only if one differs from the default. */
function detailColumns<Row>(
  tasks: readonly Task[],
  taskOf: (row: Row) => Task | null,
): readonly Column<Row>[] {
  const cell = (read: (task: Task) => string) => (row: Row) => {
    const task = taskOf(row);
    return task === null ? "" : read(task);
  };
  const ruleOf = (task: Task) => (task.trigger_rule === "all_success" ? "" : ruleName(task));
  const poolOf = ({ pool }: Task) => (pool === "default_pool" ? "" : (pool ?? ""));
  const rule = { title: "RULE", value: cell(ruleOf), flexible: true, optional: true };
  const pool = { title: "POOL", value: cell(poolOf), flexible: true, optional: true };
  return [
    { title: "OPERATOR", value: cell((task) => task.operator_name ?? ""), flexible: true },
    { title: "RETRIES", value: cell((task) => String(task.retries ?? 0)), align: "right", optional: true },
    ...(tasks.some((task) => ruleOf(task) !== "") ? [rule] : []),
    ...(tasks.some((task) => poolOf(task) !== "") ? [pool] : []),
  ];
}

const KINDS: readonly (readonly [NodeKind, string])[] = [
  ["branch", "chooses what follows"],
  ["setup", "setup"],
  ["teardown", "teardown"],
];

/** Explains the marks that are not obvious. */
function legendOf({ nodes }: DagGraph): string {
  const marks = KINDS.filter(([kind]) => nodes.some((node) => node.kind === kind)).map(
    ([kind, words]) => `${MARKS[kind]} ${words}`,
  );
  const mapped = nodes.some(({ isMapped }) => isMapped) ? ["[] once per item of a list"] : [];
  return [...marks, ...mapped].join("   ");
}

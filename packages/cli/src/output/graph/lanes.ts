/**
 * A graph as lines of text in the manner of `git log --graph`: one line per task, and one between two tasks of a chain.
 * An edge runs down a lane. Edges share one where they can: all that leave a task with many downstream tasks, all that
 * reach a task with many upstream tasks. So a fan-out of twenty tasks and its fan-in take two lanes, not forty.
 *
 * ```
 * ●      extract
 * ├▸●─╮  clean
 * ●──▸┤  check
 *     ●  load
 *     │
 *     ●  report
 * ```
 */
import type { GraphNode, NodeKind } from "./dag-graph.ts";
import { planLanes } from "./lane-plan.ts";

export interface DrawnNode {
  readonly node: GraphNode;
  /** The lanes on its line; equally wide for all nodes. */
  readonly gutter: string;
  /** The lanes on a line after it; null: no such line. */
  readonly connector: string | null;
}

export const MARKS: Readonly<Record<NodeKind, string>> = {
  task: "●",
  branch: "◆",
  setup: "▲",
  teardown: "▼",
};

/** null if it needs more than `mostLanes` lanes, which is not readable. */
export function drawLanes(nodes: readonly GraphNode[], mostLanes: number): DrawnNode[] | null {
  const rows = planLanes(nodes, mostLanes);
  if (rows === null) return null;
  const lanes = Math.max(
    0,
    ...rows.map(({ above, at, below }) => Math.max(above.length, at + 1, below.length)),
  );
  return rows.map((row, index) => ({
    node: row.node,
    gutter: gutterOf(row, lanes),
    connector: connectorOf(row, rows[index + 1], lanes),
  }));
}

/** Two tasks on adjacent lines of a lane look the same with and without an edge: the edge needs a line in between. */
function connectorOf({ at, below }: Row, next: Row | undefined, lanes: number): string | null {
  if (next?.at !== at || !below[at]) return null;
  return Array.from({ length: lanes }, (_, lane) => (below[lane] ? "│" : " ")).join(" ");
}

type Row = NonNullable<ReturnType<typeof planLanes>>[number];

function gutterOf(row: Row, lanes: number): string {
  const { above, at, below, from, node, to } = row;
  const connected = new Set([at, ...from, ...to]);
  const first = Math.min(...connected);
  const last = Math.max(...connected);
  let text = "";
  for (let lane = 0; lane < lanes; lane++) {
    const isUp = above[lane] === true;
    const isDown = below[lane] === true;
    if (lane === at) text += MARKS[node.kind];
    // A lane that only crosses is not interrupted.
    else if (!connected.has(lane)) text += isUp || isDown ? "│" : lane > first && lane < last ? "─" : " ";
    else text += CORNERS[`${+isUp}${+isDown}${+(lane > first)}${+(lane < last)}`] ?? "─";
    if (lane === lanes - 1) break;
    text += lane >= first && lane < last ? (arrowAfter(lane, row) ?? "─") : " ";
  }
  return text;
}

/** The end of an edge: at the task, or at a lane that was already open. */
function arrowAfter(lane: number, { above, at, from, to }: Row): string | null {
  if (lane === at - 1 && from.some((each) => each < at)) return "▸";
  if (lane === at && from.some((each) => each > at)) return "◂";
  if (lane < at && to.includes(lane) && above[lane]) return "◂";
  return lane + 1 > at && to.includes(lane + 1) && above[lane + 1] ? "▸" : null;
}

/** By the directions in which lines leave: up, down, left, right. */
const CORNERS: Readonly<Record<string, string>> = {
  "1100": "│",
  "1101": "├",
  "1110": "┤",
  "1111": "┼",
  "1001": "╰",
  "1010": "╯",
  "0101": "╭",
  "0110": "╮",
  "0111": "┬",
  "1011": "┴",
  "0011": "─",
};

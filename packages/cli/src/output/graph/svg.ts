/** A DAG as an SVG image with light and dark colours. */
import { type DagGraph, type GraphNode, labelInGroup, nodeLabel } from "./dag-graph.ts";
import { layOut, type Point } from "./layout.ts";

const CHARACTER = 7.3;
const PADDING = 14;
const HEIGHT = 34;
const TITLE = 34;
const MARGIN = 20;

const STYLE = `
    svg { background: #ffffff; color-scheme: light dark; font: 13px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
    text { fill: #0f172a; dominant-baseline: central; }
    .title { font-size: 16px; font-weight: 600; }
    .node rect, .node path { fill: #f8fafc; stroke: #64748b; stroke-width: 1.2; }
    .node text { text-anchor: middle; font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12px; }
    .branch path { fill: #fef3c7; stroke: #d97706; }
    .setup rect, .teardown rect { fill: #ecfdf5; stroke: #059669; }
    .mapped .behind { fill: #e2e8f0; }
    .group rect { fill: #94a3b81a; stroke: #94a3b8; stroke-dasharray: 4 3; }
    .group text { fill: #475569; font-size: 12px; font-weight: 600; }
    .edge { fill: none; stroke: #94a3b8; stroke-width: 1.4; marker-end: url(#arrow); }
    .cleans { stroke-dasharray: 5 4; }
    #arrow path { fill: #94a3b8; }
    @media (prefers-color-scheme: dark) {
      svg { background: #0b1120; }
      text { fill: #e2e8f0; }
      .node rect, .node path { fill: #1e293b; stroke: #94a3b8; }
      .branch path { fill: #422006; stroke: #f59e0b; }
      .setup rect, .teardown rect { fill: #022c22; stroke: #34d399; }
      .mapped .behind { fill: #334155; }
      .group text { fill: #94a3b8; }
    }`;

export async function svgText(graph: DagGraph): Promise<string> {
  const laidOut = await layOut(graph, (node, isBoxed) => ({ width: widthOf(node, isBoxed), height: HEIGHT }));
  const width = Math.ceil(Math.max(laidOut.width, graph.dagId.length * 10) + 2 * MARGIN);
  const height = Math.ceil(laidOut.height - laidOut.top + TITLE + 2 * MARGIN);
  const edges = laidOut.edges.map(({ from, points, to }) => {
    const isCleaning = to.setup === from.id;
    return `    <path class="edge${isCleaning ? " cleans" : ""}" d="${curve(points)}"/>`;
  });
  const groups = laidOut.groups.map(
    ({ box, id }) => `    <g class="group">
      <rect x="${n(box.left)}" y="${n(box.top)}" width="${n(box.width)}" height="${n(box.height)}" rx="8"/>
      <text x="${n(box.left + 10)}" y="${n(box.top + 12)}">${escaped(id)}</text>
    </g>`,
  );
  const isBoxed = laidOut.groups.length > 0;
  const nodes = laidOut.nodes.map(({ box, node }) => nodeText(node, box, shown(node, isBoxed)));
  return `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
  <title>${escaped(graph.dagId)}</title>
  <style>${STYLE}
  </style>
  <defs>
    <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>
  </defs>
  <text class="title" x="${MARGIN}" y="${MARGIN + 6}">${escaped(graph.dagId)}</text>
  <g transform="translate(${MARGIN} ${n(MARGIN + TITLE - laidOut.top)})">
${[...groups, ...edges, ...nodes].join("\n")}
  </g>
</svg>`;
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

function nodeText(node: GraphNode, { height, left, top, width }: Box, text: string): string {
  const rect = (shift: number, name: string) =>
    `<rect${name} x="${n(left + shift)}" y="${n(top - shift)}" width="${n(width)}" height="${n(height)}" rx="${node.kind === "task" ? 6 : 17}"/>`;
  const cut = 12;
  const branch = `<path d="M${n(left)} ${n(top + height / 2)}l${cut} ${-height / 2}h${n(width - 2 * cut)}l${cut} ${height / 2}l${-cut} ${height / 2}h${n(2 * cut - width)}z"/>`;
  const shape = node.kind === "branch" ? branch : rect(0, "");
  const behind = node.isMapped ? rect(4, ' class="behind"') : "";
  const classes = ["node", node.kind, ...(node.isMapped ? ["mapped"] : [])].join(" ");
  return `    <g class="${classes}"><title>${escaped(node.id)}</title>${behind}${shape}<text x="${n(left + width / 2)}" y="${n(top + height / 2)}">${escaped(text)}</text></g>`;
}

const SIGNS: Readonly<Record<GraphNode["kind"], string>> = {
  task: "",
  branch: "",
  setup: "▲ ",
  teardown: "▼ ",
};

/** Without the name of its group if a box shows it. */
function shown(node: GraphNode, isBoxed: boolean): string {
  return `${SIGNS[node.kind]}${isBoxed ? labelInGroup(node) : nodeLabel(node)}`;
}

function widthOf(node: GraphNode, isBoxed: boolean): number {
  return shown(node, isBoxed).length * CHARACTER + 2 * PADDING + (node.kind === "branch" ? 10 : 0);
}

/** A curve through the midpoints of the segments, which rounds the corners. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = points.at(-1);
  if (!first || !last) return "";
  let path = `M${n(first.x)} ${n(first.y)}`;
  for (const [index, point] of rest.slice(0, -1).entries()) {
    const next = rest[index + 1]!;
    const end = index === rest.length - 2 ? next : { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    path += `Q${n(point.x)} ${n(point.y)} ${n(end.x)} ${n(end.y)}`;
  }
  return rest.length === 1 ? `${path}L${n(last.x)} ${n(last.y)}` : path;
}

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** Which part of a graph to show. Pure. */
import type { Box, Boxes } from "./elk-graph.ts";
import type { VisibleGraph } from "./graph-model.ts";

export interface Viewport {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** At which names can be read. */
export const LEAST_ZOOM = 0.35;
const MARGIN = 24;
/** Of a task that is moved into view. */
const TASK_ZOOM = 0.8;

/** The whole graph, or null if it would be too small to read. */
export function wholeGraph({ nodes }: VisibleGraph, boxes: Boxes, { height, width }: Size): Viewport | null {
  const outer = nodes.filter(({ parent }) => parent === null).map(({ key }) => boxes[key]!);
  const left = Math.min(...outer.map(({ x }) => x));
  const top = Math.min(...outer.map(({ y }) => y));
  const right = Math.max(...outer.map((box) => box.x + box.width));
  const bottom = Math.max(...outer.map((box) => box.y + box.height));
  const zoom = Math.min(
    1,
    (width - 2 * MARGIN) / Math.max(1, right - left),
    (height - 2 * MARGIN) / Math.max(1, bottom - top),
  );
  if (zoom < LEAST_ZOOM) return null;
  return { x: width / 2 - ((left + right) / 2) * zoom, y: height / 2 - ((top + bottom) / 2) * zoom, zoom };
}

/** One node in the middle. */
export function nodeInMiddle(
  graph: VisibleGraph,
  boxes: Boxes,
  { height, width }: Size,
  key: string,
): Viewport | null {
  const box = absoluteBox(graph, boxes, key);
  if (box === null) return null;
  return {
    x: width / 2 - (box.x + box.width / 2) * TASK_ZOOM,
    y: height / 2 - (box.y + box.height / 2) * TASK_ZOOM,
    zoom: TASK_ZOOM,
  };
}

/** Positions are relative to the groups around a node. */
function absoluteBox({ nodes }: VisibleGraph, boxes: Boxes, key: string): Box | null {
  const own = boxes[key];
  if (own === undefined) return null;
  const parents = new Map(nodes.map((node) => [node.key, node.parent]));
  let { x, y } = own;
  for (let at = parents.get(key) ?? null; at !== null; at = parents.get(at) ?? null) {
    x += boxes[at]!.x;
    y += boxes[at]!.y;
  }
  return { ...own, x, y };
}

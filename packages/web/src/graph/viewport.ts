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
export function wholeGraph(graph: VisibleGraph, boxes: Boxes, { height, width }: Size): Viewport | null {
  const { x, y, ...bounds } = boundsOf(graph, boxes);
  const zoom = Math.min(
    1,
    (width - 2 * MARGIN) / Math.max(1, bounds.width),
    (height - 2 * MARGIN) / Math.max(1, bounds.height),
  );
  if (zoom < LEAST_ZOOM) return null;
  return {
    x: width / 2 - (x + bounds.width / 2) * zoom,
    y: height / 2 - (y + bounds.height / 2) * zoom,
    zoom,
  };
}

/** One node as near to the middle as possible without empty space beyond the edges of the graph. */
export function aroundNode(graph: VisibleGraph, boxes: Boxes, size: Size, key: string): Viewport | null {
  const box = absoluteBox(graph, boxes, key);
  if (box === null) return null;
  const bounds = boundsOf(graph, boxes);
  return {
    x: offset(size.width, box.x + box.width / 2, bounds.x, bounds.width),
    y: offset(size.height, box.y + box.height / 2, bounds.y, bounds.height),
    zoom: TASK_ZOOM,
  };
}

/** Along one axis. A graph that fits is in the middle. */
function offset(view: number, middle: number, start: number, length: number): number {
  const atStart = MARGIN - start * TASK_ZOOM;
  const atEnd = view - MARGIN - (start + length) * TASK_ZOOM;
  if (atEnd >= atStart) return (atStart + atEnd) / 2;
  return Math.min(atStart, Math.max(atEnd, view / 2 - middle * TASK_ZOOM));
}

function boundsOf({ nodes }: VisibleGraph, boxes: Boxes): Box {
  const outer = nodes.filter(({ parent }) => parent === null).map(({ key }) => boxes[key]!);
  const x = Math.min(...outer.map((box) => box.x));
  const y = Math.min(...outer.map((box) => box.y));
  return {
    ...{ x, y },
    width: Math.max(...outer.map((box) => box.x + box.width)) - x,
    height: Math.max(...outer.map((box) => box.y + box.height)) - y,
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

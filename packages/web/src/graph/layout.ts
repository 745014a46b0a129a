/** Positions of a graph: from the cache, or computed by a worker, which is started by the first graph that is not cached. */
import ELK, { type ELK as Elk } from "elkjs/lib/elk-api.js";
import ElkWorker from "elkjs/lib/elk-worker.min.js?worker";
import { type Boxes, boxesOf, type Direction, elkGraph, structureHash } from "./elk-graph.ts";
import type { VisibleGraph } from "./graph-model.ts";
import { cachedLayout, cacheLayout } from "./layout-cache.ts";

let elk: Elk | undefined;

export async function layOut(graph: VisibleGraph, direction: Direction): Promise<Boxes> {
  const input = elkGraph(graph, direction);
  const hash = structureHash(input);
  const cached = await cachedLayout(hash);
  if (cached !== null) return cached;
  elk ??= new ELK({ workerFactory: () => new ElkWorker() });
  const boxes = boxesOf(await elk.layout(input));
  await cacheLayout(hash, boxes);
  return boxes;
}

import { lazy, Suspense } from "react";
import { Loading } from "../ui/panels.tsx";
import type { GraphProps } from "./graph-view.tsx";

const GraphView = lazy(() => import("./graph-view.tsx"));

/** The graph, whose code is loaded when it is first shown. Fills its parent. */
export function LazyGraph(props: GraphProps) {
  return (
    <Suspense fallback={<Loading label="Loading the graph" />}>
      <GraphView {...props} />
    </Suspense>
  );
}

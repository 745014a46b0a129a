import { useEffect, useState } from "react";
import { Loading } from "../ui/panels.tsx";
import type { GraphProps } from "./graph-view.tsx";

type View = (props: GraphProps) => React.ReactNode;

let loaded: View | undefined;

/** The graph, whose code is loaded when it is first shown. Fills its parent. */
export function LazyGraph(props: GraphProps) {
  const [View, setView] = useState(() => loaded);
  // Not by Suspense: React shows nothing new for 300 ms after a fallback.
  useEffect(() => {
    if (loaded !== undefined) return;
    import("./graph-view.tsx").then(
      ({ default: view }) => {
        loaded = view;
        setView(() => view);
      },
      (error: unknown) =>
        setView(() => {
          throw error;
        }),
    );
  }, []);
  return View === undefined ? <Loading label="Loading the graph" /> : <View {...props} />;
}

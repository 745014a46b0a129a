/** The colours for a canvas, resolved again when the theme changes. */
import { useMemo, useSyncExternalStore } from "react";
import { usePreferences } from "../app/preferences.ts";
import { type CanvasPaint, canvasPaint } from "./canvas-paint.ts";

const system = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)", "(forced-colors: active)"].map(
  (query) => matchMedia(query),
);

function subscribe(listener: () => void): () => void {
  for (const each of system) each.addEventListener("change", listener);
  return () => {
    for (const each of system) each.removeEventListener("change", listener);
  };
}

export function useCanvasPaint(): CanvasPaint {
  const { contrast, theme } = usePreferences();
  const wanted = useSyncExternalStore(subscribe, () => system.map(({ matches }) => matches).join());
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours of the body depend on all of these
  return useMemo(() => canvasPaint(document.body), [theme, contrast, wanted]);
}

/** The colours for a canvas, resolved again when the theme changes. */
import { useMemo, useSyncExternalStore } from "react";
import { usePreferences } from "../app/preferences.ts";
import { type CanvasPaint, canvasPaint } from "./canvas-paint.ts";

const dark = matchMedia("(prefers-color-scheme: dark)");

function subscribe(listener: () => void): () => void {
  dark.addEventListener("change", listener);
  return () => dark.removeEventListener("change", listener);
}

export function useCanvasPaint(): CanvasPaint {
  const { theme } = usePreferences();
  const isDark = useSyncExternalStore(subscribe, () => dark.matches);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the colours of the body depend on both
  return useMemo(() => canvasPaint(document.body), [theme, isDark]);
}

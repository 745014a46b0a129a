/** Reads data again when a topic has changed: at once, then at most every 0.3 s, and not while the page is hidden. */
import { useEffect, useRef } from "react";
import { reloadPaths } from "../actions/change.ts";
import { useLive } from "./live.ts";

const LEAST_MS = 300;

/**
 * @param topic A topic of the live stream; null: none.
 * @param paths Of the API: every answer that is shown is read again.
 */
export function useReload(topic: string | null, paths: readonly string[]): void {
  const reload = useRef<() => void>(() => {});
  const current = useRef(paths);
  current.current = paths;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDue = false;
    let isStopped = false;
    const run = async () => {
      isDue = false;
      const since = performance.now();
      await reloadPaths(current.current);
      if (isStopped) return;
      timer = setTimeout(
        () => {
          timer = undefined;
          if (isDue) start();
        },
        Math.max(0, LEAST_MS - (performance.now() - since)),
      );
    };
    let isRunning = false;
    const start = () => {
      isDue = true;
      if (document.hidden || isRunning || timer !== undefined) return;
      isRunning = true;
      void run().finally(() => {
        isRunning = false;
      });
    };
    reload.current = start;
    const onVisible = () => {
      if (isDue) start();
    };
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      isStopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, []);
  useLive(topic, () => reload.current());
}

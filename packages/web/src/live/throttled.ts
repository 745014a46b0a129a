import { useEffect, useMemo, useRef } from "react";

/** A function that runs `act` at once, then at most every `ms`, once more at the end; not while the page is hidden. */
export function useThrottled(act: () => unknown, ms: number): () => void {
  const current = useRef(act);
  current.current = act;
  const throttled = useMemo(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDue = false;
    const run = () => {
      if (document.hidden) return;
      isDue = false;
      void current.current();
      timer = setTimeout(() => {
        timer = undefined;
        if (isDue) run();
      }, ms);
    };
    const call = () => {
      isDue = true;
      if (timer === undefined) run();
    };
    const onVisible = () => {
      if (isDue && timer === undefined) run();
    };
    const stop = () => {
      clearTimeout(timer);
      timer = undefined;
      isDue = false;
    };
    return { call, onVisible, stop };
  }, [ms]);
  useEffect(() => {
    document.addEventListener("visibilitychange", throttled.onVisible);
    return () => {
      throttled.stop();
      document.removeEventListener("visibilitychange", throttled.onVisible);
    };
  }, [throttled]);
  return throttled.call;
}

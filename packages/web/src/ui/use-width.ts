import { type RefObject, useLayoutEffect, useState } from "react";

/** The width of an element in pixels, as it changes; 0 before the first layout. */
export function useWidth(element: RefObject<Element | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)));
    observer.observe(target);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

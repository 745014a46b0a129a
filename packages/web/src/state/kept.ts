import { useRef } from "react";

/** The earlier list while it has the same items, so that nothing that depends on it is made again. */
export function useKept<Item>(items: readonly Item[]): readonly Item[] {
  const kept = useRef(items);
  const isSame = kept.current.length === items.length && items.every((item, at) => item === kept.current[at]);
  if (!isSame) kept.current = items;
  return kept.current;
}

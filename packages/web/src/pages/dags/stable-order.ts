/** Keeps rows where they are while their data changes: a live list must not move below the pointer. */
import { useMemo, useState } from "react";

/** The rows in a known order; rows that are new to it follow at the end. Pure. */
export function inOrder<Row>(
  rows: readonly Row[],
  order: readonly string[],
  keyOf: (row: Row) => string,
): Row[] {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]));
  const known = order.flatMap((key) => {
    const row = byKey.get(key);
    byKey.delete(key);
    return row === undefined ? [] : [row];
  });
  return [...known, ...byKey.values()];
}

/**
 * @param question What the rows answer: another one begins a new order.
 * @returns the rows, and a function that applies their present order, if it differs.
 */
export function useStableOrder<Row>(
  rows: readonly Row[],
  question: string,
  keyOf: (row: Row) => string,
): { readonly shown: readonly Row[]; readonly sort: (() => void) | undefined } {
  const [kept, setKept] = useState<{ readonly question: string; readonly order: readonly string[] }>({
    ...{ question: "", order: [] },
  });
  const keys = useMemo(() => rows.map(keyOf), [rows, keyOf]);
  const isNew = kept.question !== question || kept.order.length === 0;
  const shown = useMemo(
    () => (isNew ? rows : inOrder(rows, kept.order, keyOf)),
    [isNew, rows, kept.order, keyOf],
  );
  const shownKeys = shown.map(keyOf);
  // Also remembers rows that were added at the end, so that they stay there.
  if (rows.length > 0 && (isNew || shownKeys.some((key, index) => kept.order[index] !== key)))
    setKept({ question, order: shownKeys });
  const isSorted = shownKeys.every((key, index) => key === keys[index]);
  return { shown, sort: isSorted ? undefined : () => setKept({ question, order: keys }) };
}

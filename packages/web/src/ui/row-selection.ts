/** Which rows of a table are selected. A row that leaves the list is not among them: only visible rows are changed. */
import { useMemo, useRef, useState } from "react";

type RowKey = string | number;

/**
 * The selection after the row at `at` was toggled. With `from`, the row that was toggled before it, all rows between them get its
 * new state.
 */
export function toggled(
  before: ReadonlySet<RowKey>,
  keys: readonly RowKey[],
  at: number,
  from: RowKey | null,
): ReadonlySet<RowKey> {
  const isOn = !before.has(keys[at]!);
  const start = from === null ? -1 : keys.indexOf(from);
  const range = start < 0 ? [at, at] : [Math.min(start, at), Math.max(start, at)];
  const after = new Set(before);
  for (const key of keys.slice(range[0], range[1]! + 1)) isOn ? after.add(key) : after.delete(key);
  return after;
}

export interface RowSelection<Row> {
  /** In the order of the list. */
  readonly rows: readonly Row[];
  readonly has: (row: Row) => boolean;
  /** @param isRange Also the rows since the last toggled one. */
  readonly toggle: (index: number, isRange: boolean) => void;
  readonly all: (isOn: boolean) => void;
}

export function useRowSelection<Row>(list: readonly Row[], keyOf: (row: Row) => RowKey): RowSelection<Row> {
  const [keys, setKeys] = useState<ReadonlySet<RowKey>>(new Set());
  const last = useRef<RowKey | null>(null);
  const rows = useMemo(
    () => (keys.size === 0 ? [] : list.filter((row) => keys.has(keyOf(row)))),
    [keys, list, keyOf],
  );
  return {
    rows,
    has: (row) => keys.has(keyOf(row)),
    toggle: (index, isRange) => {
      const known = list.map(keyOf);
      setKeys(toggled(keys, known, index, isRange ? last.current : null));
      last.current = known[index]!;
    },
    all: (isOn) => setKeys(new Set(isOn ? list.map(keyOf) : [])),
  };
}

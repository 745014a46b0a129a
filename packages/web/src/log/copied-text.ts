/** What a selection in a log contains, from the log itself: rows that are not drawn have no elements. */

export interface Point {
  readonly line: number;
  readonly column: number;
}

/** The place of a node in a log; null outside the text of a line. */
export function pointOf(node: Node | null, offset: number): Point | null {
  const element = node instanceof Element ? node : node?.parentElement;
  const row = element?.closest<HTMLElement>("[data-line]");
  if (node === null || row === null || row === undefined) return null;
  const line = Number(row.dataset["line"]);
  const text = row.querySelector("[data-text]");
  if (text === null || !text.contains(node)) return { line, column: 0 };
  const range = document.createRange();
  range.setStart(text, 0);
  range.setEnd(node, offset);
  return { line, column: range.toString().length };
}

export function ordered(a: Point, b: Point): readonly [Point, Point] {
  return a.line < b.line || (a.line === b.line && a.column <= b.column) ? [a, b] : [b, a];
}

/** Cuts the first and the last of some lines where the selection begins and ends. */
export function cutLines(texts: readonly string[], from: Point, to: Point): string {
  const cut = [...texts];
  const lastAt = cut.length - 1;
  // A selection that ends at the beginning of a line leaves it out.
  if (lastAt > 0 && to.column === 0) cut.pop();
  else cut[lastAt] = cut[lastAt]!.slice(0, to.column);
  cut[0] = cut[0]!.slice(from.column);
  return cut.join("\n");
}

/** Where everything of a grid is, in CSS pixels. Pure. */

export const ROW = 24;
/** The head: notes and versions, bars, kinds of runs, dates. */
export const MARK = 20;
export const BARS = 68;
export const KIND = 8;
export const AXIS = 20;
export const HEAD = MARK + BARS + KIND + AXIS;

/** Of the names, in a grid of this width. */
export function labelsWidth(width: number): number {
  return width < 560 ? 132 : 208;
}

const LEAST_STEP = 11;
const MOST_STEP = 22;

/** The distance of two columns: wide if there are few runs, and stable while older runs are loaded. */
export function stepFor(width: number, columns: number): number {
  const even = Math.floor(width / Math.max(1, Math.min(columns, 100)));
  return Math.min(MOST_STEP, Math.max(LEAST_STEP, even));
}

/** A row of -1 is the head, that is, the run itself. */
export interface Cell {
  readonly row: number;
  readonly column: number;
}

export interface Scene {
  /** Of the part that scrolls below the labels and the head. */
  readonly width: number;
  readonly height: number;
  readonly scrollLeft: number;
  readonly scrollTop: number;
  readonly step: number;
  readonly columns: number;
  readonly rows: number;
}

/** The cell at a point of the canvas, whose origin is at the head; null outside of all columns. */
export function cellAt(scene: Scene, x: number, y: number): Cell | null {
  const column = Math.floor((x + scene.scrollLeft) / scene.step);
  if (x < 0 || column < 0 || column >= scene.columns) return null;
  if (y < HEAD) return { row: -1, column };
  const row = Math.floor((y - HEAD + scene.scrollTop) / ROW);
  return row < scene.rows ? { row, column } : null;
}

export function xOf({ scrollLeft, step }: Scene, column: number): number {
  return column * step - scrollLeft;
}

export function yOf({ scrollTop }: Scene, row: number): number {
  return row < 0 ? MARK : HEAD + row * ROW - scrollTop;
}

/** First and one past the last. */
export function visibleColumns({ columns, scrollLeft, step, width }: Scene): readonly [number, number] {
  const first = Math.max(0, Math.floor(scrollLeft / step));
  return [first, Math.min(columns, Math.ceil((scrollLeft + width) / step))];
}

export function visibleRows({ height, rows, scrollTop }: Scene): readonly [number, number] {
  const first = Math.max(0, Math.floor(scrollTop / ROW));
  return [first, Math.min(rows, Math.ceil((scrollTop + height - HEAD) / ROW))];
}

/** The next cell for an arrow key, within the grid; null for other keys. */
export function moved(key: string, { column, row }: Cell, scene: Scene, page: number): Cell | null {
  const within = (to: Cell): Cell => ({
    row: Math.min(scene.rows - 1, Math.max(-1, to.row)),
    column: Math.min(scene.columns - 1, Math.max(0, to.column)),
  });
  switch (key) {
    case "ArrowLeft":
      return within({ row, column: column - 1 });
    case "ArrowRight":
      return within({ row, column: column + 1 });
    case "ArrowUp":
      return within({ row: row - 1, column });
    case "ArrowDown":
      return within({ row: row + 1, column });
    case "PageUp":
      return within({ row: row - page, column });
    case "PageDown":
      return within({ row: row + page, column });
    case "Home":
      return within({ row, column: 0 });
    case "End":
      return within({ row, column: scene.columns - 1 });
    default:
      return null;
  }
}

/** The offset at which `at` with `size` is visible in a window of `length`, closest to the present offset. */
export function revealed(offset: number, length: number, at: number, size: number): number {
  if (at < offset) return at;
  return at + size > offset + length ? at + size - length : offset;
}

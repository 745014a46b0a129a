import { plainLine } from "../terminal.ts";

export interface Column<T> {
  readonly title: string;
  readonly value: (row: T) => string;
  readonly align?: "right";
  /**
   * May be cut on a narrow terminal. Never set for ids: a cut id cannot be copied. A number: optional columns are left out
   * before this column is cut below it.
   */
  readonly flexible?: boolean | number;
  /** Left out on a narrow terminal, the last column first. */
  readonly optional?: boolean;
  /** On a narrow terminal, shown on a line above its rows, once for consecutive rows with the same value. */
  readonly heading?: boolean;
  readonly paint?: (row: T, cell: string) => string;
}

const GAP = 2;
const FLEXIBLE_MIN = 12;
const HARD_MIN = 4;

/** Aligned columns. Without a width nothing is cut. Lines may exceed the width if columns that are not flexible need it. */
export function renderTable<T>(rows: readonly T[], columns: readonly Column<T>[], width?: number): string[] {
  const cells = rows.map((row) => columns.map((column) => plainLine(column.value(row))));
  const natural = columns.map((column, index) =>
    Math.max(displayWidth(column.title), ...cells.map((line) => displayWidth(line[index]!))),
  );
  const every = columns.map((_, index) => index);
  const headings = width === undefined ? [] : headingColumns(columns, natural, width);
  const indent = headings.length > 0 ? GAP : 0;
  const inRows = every.filter((index) => !headings.includes(index));
  const room = width === undefined ? undefined : width - indent;
  const kept = room === undefined ? inRows : keepColumns(columns, natural, { of: inRows, width: room });
  const widths = room === undefined ? natural : fitWidths(columns, natural, { kept, width: room });

  const line = (texts: readonly string[], row: T | undefined): string =>
    " ".repeat(indent) +
    kept
      .map((index, position) => {
        const column = columns[index]!;
        const cut = truncate(texts[index]!, widths[index]!);
        const padding = " ".repeat(Math.max(0, widths[index]! - displayWidth(cut)));
        const shown = row !== undefined && column.paint ? column.paint(row, cut) : cut;
        if (column.align === "right") return padding + shown;
        return position === kept.length - 1 ? shown : shown + padding;
      })
      .join(" ".repeat(GAP))
      .trimEnd();

  return [
    line(
      columns.map((column) => column.title),
      undefined,
    ),
    ...rows.flatMap((row, index) => {
      const headingOf = (texts: readonly string[] | undefined) =>
        headings.map((heading) => texts?.[heading]).join(" ".repeat(GAP));
      const heading = headingOf(cells[index]);
      const isNew = headings.length > 0 && (index === 0 || heading !== headingOf(cells[index - 1]));
      return [...(isNew ? [heading] : []), line(cells[index]!, row)];
    }),
  ];
}

/** The fields of one object: one name and value per line. */
export function renderFields(
  fields: readonly (readonly [string, string | null | undefined])[],
  paintName: (name: string) => string,
): string[] {
  const shown = fields.filter(
    (field): field is readonly [string, string] => field[1] != null && field[1] !== "",
  );
  const width = Math.max(0, ...shown.map(([name]) => displayWidth(name)));
  return shown.flatMap(([name, value]) => {
    const [first = "", ...rest] = value.split("\n").map(plainLine);
    const indent = " ".repeat(width + GAP);
    return [
      paintName(name) + " ".repeat(width - displayWidth(name) + GAP) + first,
      ...rest.map((l) => indent + l),
    ];
  });
}

/** Cells of a text on a terminal: East Asian wide characters and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (ZERO_WIDTH.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}

const ZERO_WIDTH = /^(?:\p{M}|[\u200b-\u200d])$/u;
const WIDE =
  /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u;

/** Cuts a text to a number of cells and marks the cut with "…". */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let cut = "";
  let used = 0;
  for (const character of text) {
    const next = displayWidth(character);
    if (used + next > width - 1) break;
    cut += character;
    used += next;
  }
  return `${cut}…`;
}

/** The columns that are moved above the rows: none if the columns that are not optional fit uncut. */
function headingColumns<T>(
  columns: readonly Column<T>[],
  natural: readonly number[],
  width: number,
): number[] {
  const required = natural.filter((_, index) => !columns[index]!.optional);
  if (sum(required) + GAP * (required.length - 1) <= width) return [];
  return columns.flatMap(({ heading }, index) => (heading ? [index] : []));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function keepColumns<T>(
  columns: readonly Column<T>[],
  natural: readonly number[],
  { of, width }: { readonly of: readonly number[]; readonly width: number },
): number[] {
  const kept = [...of];
  const leastOf = (index: number) => {
    const { flexible = false } = columns[index]!;
    if (flexible === false) return natural[index]!;
    return Math.min(natural[index]!, flexible === true ? FLEXIBLE_MIN : flexible);
  };
  const least = () => sum(kept.map(leastOf)) + GAP * (kept.length - 1);
  for (let index = columns.length - 1; index > 0 && least() > width; index--) {
    if (columns[index]!.optional && kept.includes(index)) kept.splice(kept.indexOf(index), 1);
  }
  return kept;
}

function fitWidths<T>(
  columns: readonly Column<T>[],
  natural: readonly number[],
  room: { kept: readonly number[]; width: number },
): number[] {
  const widths = [...natural];
  const excess = () =>
    sum(room.kept.map((index) => widths[index]!)) + GAP * (room.kept.length - 1) - room.width;
  const shrink = (candidates: readonly number[], minimum: number): void => {
    while (excess() > 0) {
      const widest = candidates.reduce<number | undefined>(
        (best, index) => (best === undefined || widths[index]! > widths[best]! ? index : best),
        undefined,
      );
      if (widest === undefined || widths[widest]! <= minimum) return;
      widths[widest]!--;
    }
  };
  const flexible = room.kept.filter((index) => columns[index]!.flexible);
  for (const minimum of [FLEXIBLE_MIN, HARD_MIN]) shrink(flexible, minimum);
  return widths;
}

/** Colours of terminals in log lines: splits a line into pieces of one style. Other control sequences are dropped. */

export interface Style {
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
  /** 0 to 15, or "#rrggbb". */
  readonly color?: number | string;
  readonly background?: number | string;
}

export interface Piece {
  readonly text: string;
  readonly style: Style;
}

const PLAIN: Style = {};
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const SEQUENCE = /\u001b(?:\[([0-9;:?]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;

function hasEscapes(line: string): boolean {
  return line.includes("\u001b");
}

export function stripEscapes(line: string): string {
  return hasEscapes(line) ? line.replace(SEQUENCE, "") : line;
}

export function styledPieces(line: string): Piece[] {
  if (!hasEscapes(line)) return [{ text: line, style: PLAIN }];
  const pieces: Piece[] = [];
  let style = PLAIN;
  let from = 0;
  for (const match of line.matchAll(SEQUENCE)) {
    if (match.index > from) pieces.push({ text: line.slice(from, match.index), style });
    from = match.index + match[0].length;
    if (match[2] === "m") style = changed(style, match[1]!);
  }
  if (from < line.length) pieces.push({ text: line.slice(from), style });
  return pieces;
}

function changed(style: Style, codes: string): Style {
  const values = codes.split(/[;:]/).map(Number);
  let next: Style = style;
  for (let at = 0; at < values.length; at += 1) {
    const code = values[at]!;
    if (code === 38 || code === 48) {
      const [color, used] = extended(values, at + 1);
      at += used;
      if (color !== undefined) next = { ...next, [code === 38 ? "color" : "background"]: color };
    } else next = code === 0 ? PLAIN : { ...next, ...one(code) };
  }
  return next;
}

function one(code: number): Style {
  if (code >= 30 && code <= 37) return { color: code - 30 };
  if (code >= 90 && code <= 97) return { color: code - 82 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 100 && code <= 107) return { background: code - 92 };
  switch (code) {
    case 1:
      return { bold: true };
    case 2:
      return { dim: true };
    case 3:
      return { italic: true };
    case 4:
      return { underline: true };
    case 7:
      return { inverse: true };
    case 22:
      return { bold: undefined, dim: undefined } as Style;
    case 23:
      return { italic: undefined } as Style;
    case 24:
      return { underline: undefined } as Style;
    case 27:
      return { inverse: undefined } as Style;
    case 39:
      return { color: undefined } as Style;
    case 49:
      return { background: undefined } as Style;
    default:
      return PLAIN;
  }
}

/** `5;n` and `2;r;g;b`: the colour, and how many values it has taken. */
function extended(values: readonly number[], at: number): readonly [number | string | undefined, number] {
  const byte = (index: number) => Math.min(255, Math.max(0, values[index] || 0));
  if (values[at] === 5) return [indexed(byte(at + 1)), 2];
  if (values[at] === 2) return [hex(byte(at + 1), byte(at + 2), byte(at + 3)), 4];
  return [undefined, 1];
}

function indexed(index: number): number | string {
  if (index < 16) return index;
  if (index >= 232) return hex(...gray(8 + 10 * (index - 232)));
  const cube = index - 16;
  const level = (value: number) => (value === 0 ? 0 : 55 + 40 * value);
  return hex(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function gray(value: number): [number, number, number] {
  return [value, value, value];
}

function hex(red: number, green: number, blue: number): string {
  return `#${[red, green, blue].map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}

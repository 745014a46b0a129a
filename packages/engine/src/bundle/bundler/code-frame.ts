/** A position in an author's file: line from 1, column from 0. */
export interface Position {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

const CONTEXT_LINES = 2;
const MAX_WIDTH = 160;

/** "file:line:column: message" and the lines around it, with the failing line marked. */
export function withCodeFrame(message: string, position: Position, text: string | null): string {
  return `${placeOf(position)}: ${message}${codeFrame(text, position)}`;
}

export function placeOf({ file, line, column }: Position): string {
  return `${file}:${line}:${column + 1}`;
}

/** The lines around a position, after an empty line; empty if the text is unknown. */
export function codeFrame(text: string | null, { line, column }: Position): string {
  if (text === null) return "";
  const lines = text.split(/\r?\n/);
  if (line < 1 || line > lines.length) return "";
  const first = Math.max(1, line - CONTEXT_LINES);
  const last = Math.min(lines.length, line + CONTEXT_LINES);
  const gutter = String(last).length;
  const out: string[] = [];
  for (let number = first; number <= last; number++) {
    const marker = number === line ? ">" : " ";
    const content = lines[number - 1] ?? "";
    out.push(`${marker} ${String(number).padStart(gutter)} | ${content.slice(0, MAX_WIDTH)}`.trimEnd());
    if (number === line && column < MAX_WIDTH) {
      // Tabs stay tabs, so that the caret is under its character for any tab width.
      const indent = content.slice(0, column).replace(/[^\t]/g, " ");
      out.push(`  ${" ".repeat(gutter)} | ${indent}^`);
    }
  }
  return `\n\n${out.join("\n")}`;
}

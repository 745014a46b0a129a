/** Sentences on a terminal. */
import { stripVTControlCharacters } from "node:util";
import { displayWidth } from "./table.ts";

/** Kept on one line: a command in backticks, because it is copied; an instant; else a word. Colours belong to their word. */
const PIECE = /(?:`[^`]*`|\d{4}-\d\d-\d\d \d\d:\d\d|\S)+/g;

/** Deeper than a cause below the sentence, which is indented by two columns. */
const HANGING = "    ";

/**
 * The lines of a sentence; further lines are indented more than the first. Without a width, and for a piece that
 * is wider than the terminal, nothing is broken.
 */
export function wrapLine(text: string, width: number | undefined): string[] {
  if (width === undefined || cellsOf(text) <= width) return [text];
  const indent = /^ */.exec(text)![0];
  const lines: string[] = [];
  let line = "";
  for (const [piece] of text.matchAll(PIECE)) {
    if (line === "") line = indent + piece;
    else if (cellsOf(`${line} ${piece}`) <= width) line += ` ${piece}`;
    else {
      lines.push(line);
      line = indent + HANGING + piece;
    }
  }
  return [...lines, line];
}

function cellsOf(text: string): number {
  return displayWidth(stripVTControlCharacters(text));
}

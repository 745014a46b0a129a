/** A line of a log as it is stored, and as text. Pure. */
import { stripEscapes } from "./sgr.ts";

export interface LogLine {
  /** In ms; null if the line could not be parsed. */
  readonly at: number | null;
  readonly level: Level;
  readonly source: string;
  /** With escape sequences, without what a carriage return overwrote. Of a line that begins a group, the title. */
  readonly message: string;
  /** As JSON; "" without fields. */
  readonly fields: string;
}

export const LEVELS = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof LEVELS)[number];

/** Bits of a byte of the index. */
export const KIND = { level: 3, source: 12, trigger: 16, group: 32, endGroup: 64 } as const;

/** A line longer than this is shown up to here. */
export const SHOWN_LENGTH = 2_000;

const GROUP = /^::(?:end)?group::/;

export function parseLine(stored: string): LogLine {
  try {
    const { t, level, source, message, fields } = JSON.parse(stored);
    return {
      at: Date.parse(t),
      level: LEVELS.includes(level) ? level : "info",
      source: String(source),
      message: overwritten(String(message)).replace(GROUP, ""),
      fields: fields === undefined ? "" : JSON.stringify(fields),
    };
  } catch {
    return { at: null, level: "warn", source: "engine", message: stored, fields: "" };
  }
}

/** Progress bars write a line again and again: the last writing is left. */
function overwritten(message: string): string {
  if (!message.includes("\r")) return message;
  return message
    .split("\n")
    .map((line) => {
      const parts = line.split("\r").filter((part) => part !== "");
      return parts.at(-1) ?? "";
    })
    .join("\n");
}

/** What the line shows: message and fields, on one row. */
export function shownText({ fields, message }: LogLine): string {
  const text = message.replaceAll("\n", " ⏎ ");
  return fields === "" ? text : `${text} ${fields}`;
}

/** For the clipboard and files. */
export function plainText({ fields, message }: LogLine): string {
  const text = stripEscapes(message);
  return fields === "" ? text : `${text} ${fields}`;
}

export function datedText(line: LogLine): string {
  const at = line.at === null ? "" : `${new Date(line.at).toISOString()} `;
  return `${at}${line.level.toUpperCase().padEnd(5)} ${plainText(line)}`;
}

/** The same rule as the server's: without capitals, both cases match. */
export function occurrences(text: string, wanted: string): number[] {
  if (wanted === "") return [];
  const isExact = /[A-Z]/.test(wanted);
  const where = isExact ? text : text.toLowerCase();
  const what = isExact ? wanted : wanted.toLowerCase();
  const found: number[] = [];
  for (let at = where.indexOf(what); at >= 0; at = where.indexOf(what, at + what.length)) found.push(at);
  return found;
}

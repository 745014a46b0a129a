import type { LogEntry } from "../client/task-log.ts";
import type { Session } from "../session.ts";
import { plainText, type Style, type Terminal } from "../terminal.ts";
import { FrameFilter, SourcePaths } from "./source-paths.ts";
import { logTime } from "./when.ts";

const LEVELS: Readonly<Record<string, Style>> = {
  error: "red",
  critical: "red",
  warning: "yellow",
  warn: "yellow",
  debug: "dim",
};

/** A log entry as text: time, level unless it is info, message and fields. */
export function logLine(terminal: Terminal, entry: LogEntry, stream: "stdout" | "stderr" = "stdout"): string {
  const paint = (style: Style, text: string) =>
    stream === "stdout" ? terminal.paint(style, text) : terminal.paintNote(style, text);
  const colour = terminal.colour(stream);
  if (typeof entry === "string") return plainText(entry, colour).replace(/\n$/, "");
  // `logger` names the source of the line; the level is enough here.
  const { timestamp, event, level, logger: _, ...fields } = entry;
  const time = typeof timestamp === "string" ? `${paint("dim", logTime(timestamp))} ` : "";
  const name = typeof level === "string" ? level.toLowerCase() : "info";
  const style = LEVELS[name];
  const label = name === "info" ? "" : `${style ? paint(style, name.toUpperCase()) : name.toUpperCase()} `;
  const rest = Object.entries(fields).map(
    ([key, value]) => ` ${paint("dim", `${key}=`)}${plainText(fieldText(value), false)}`,
  );
  return `${time}${label}${plainText(event, colour)}${rest.join("")}`;
}

/** Prints entries at the pace of stdout's reader; returns their number. */
export async function printEntries(session: Session, entries: AsyncIterable<LogEntry>): Promise<number> {
  const shown = new ShownEntries(session);
  let count = 0;
  for await (const entry of entries) {
    count++;
    const text = session.format === "json" ? JSON.stringify(entry) : shown.text(entry);
    if (text !== null) await session.terminal.pour(`${text}\n`);
  }
  return count;
}

/** Entries of one log for display: source locations can be opened, frames of the engine are left out. */
export class ShownEntries {
  readonly #terminal: Terminal;
  readonly #paths: SourcePaths;
  readonly #filter = new FrameFilter();

  constructor(session: Session, paths = SourcePaths.of(session)) {
    this.#terminal = session.terminal;
    this.#paths = paths;
  }

  /** null: nothing to show. */
  text(entry: LogEntry): string | null {
    const isText = typeof entry === "string";
    const lines = (isText ? entry : entry.event).split("\n");
    const kept = lines.filter((line) => this.#filter.isShown(line));
    if (kept.length === 0) return null;
    const event = this.#paths.inText(kept.join("\n"));
    return logLine(this.#terminal, isText ? event : { ...entry, event });
  }
}

function fieldText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

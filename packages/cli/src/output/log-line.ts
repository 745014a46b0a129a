import type { LogEntry } from "../client/task-log.ts";
import type { Session } from "../session.ts";
import { plainText, type Style, type Terminal } from "../terminal.ts";

const LEVELS: Readonly<Record<string, Style>> = {
  error: "red",
  critical: "red",
  warning: "yellow",
  warn: "yellow",
  debug: "dim",
};

/** A log entry as text: time, level when it is not the ordinary one, message, and the fields that were logged with it. */
export function logLine(terminal: Terminal, entry: LogEntry, stream: "stdout" | "stderr" = "stdout"): string {
  const paint = (style: Style, text: string) =>
    stream === "stdout" ? terminal.paint(style, text) : terminal.paintNote(style, text);
  const colour = terminal.colour(stream);
  if (typeof entry === "string") return plainText(entry, colour).replace(/\n$/, "");
  // `logger` tells the API's readers who wrote the line; here the level says enough.
  const { timestamp, event, level, logger: _, ...fields } = entry;
  const time = typeof timestamp === "string" ? `${paint("dim", clock(timestamp))} ` : "";
  const name = typeof level === "string" ? level.toLowerCase() : "info";
  const style = LEVELS[name];
  const label = name === "info" ? "" : `${style ? paint(style, name.toUpperCase()) : name.toUpperCase()} `;
  const rest = Object.entries(fields).map(
    ([key, value]) => ` ${paint("dim", `${key}=`)}${plainText(fieldText(value), false)}`,
  );
  return `${time}${label}${plainText(event, colour)}${rest.join("")}`;
}

/** Line by line; answers how many there were. */
export async function printEntries(session: Session, entries: AsyncIterable<LogEntry>): Promise<number> {
  let count = 0;
  for await (const entry of entries) {
    count++;
    session.terminal.data(
      session.format === "json" ? JSON.stringify(entry) : logLine(session.terminal, entry),
    );
  }
  return count;
}

function clock(timestamp: string): string {
  return timestamp.replace(/^[^T]*T/, "").replace(/(?:Z|[+-]\d\d:\d\d)$/, "");
}

function fieldText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

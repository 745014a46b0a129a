import type { Style, Terminal } from "../terminal.ts";

const STYLES: Readonly<Record<string, Style>> = {
  success: "green",
  failed: "red",
  upstream_failed: "red",
  running: "cyan",
  restarting: "cyan",
  queued: "blue",
  scheduled: "blue",
  up_for_retry: "yellow",
  up_for_reschedule: "yellow",
  deferred: "magenta",
  skipped: "dim",
  removed: "dim",
};

/** A state in its colour, for stdout. */
export function paintState(terminal: Terminal, state: string | null, text = stateName(state)): string {
  const style = STYLES[state ?? ""];
  return style === undefined ? text : terminal.paint(style, text);
}

/** The same for stderr. */
export function paintStateNote(terminal: Terminal, state: string | null, text = stateName(state)): string {
  const style = STYLES[state ?? ""];
  return style === undefined ? text : terminal.paintNote(style, text);
}

/** The API returns null for an instance that has not been scheduled yet. */
export function stateName(state: string | null): string {
  return state ?? "pending";
}

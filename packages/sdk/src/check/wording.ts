/** Texts for people: durations, suggestions, errors. The engine and the CLI use them, too. */
import type { ErrorFacts } from "../runtime/program.ts";

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/**
 * Formats a duration in at most two units: "40 ms", "4.9 s", "1 m 30 s", "5 h", "7 d".
 * @example durationText(90_000); // "1 m 30 s"
 */
export function durationText(ms: number): string {
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${Number((ms / 1_000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1_000) * 1_000;
  const major = UNITS.findIndex(([, unit]) => seconds >= unit);
  const [name, size] = UNITS[major]!;
  const minor = UNITS[major + 1];
  const rest = minor === undefined ? 0 : Math.floor((seconds % size) / minor[1]);
  const text = `${Math.floor(seconds / size)} ${name}`;
  return minor === undefined || rest === 0 ? text : `${text} ${rest} ${minor[0]}`;
}

/**
 * Returns the name of a task instance: task and index, then the label or nested path; `load[2/*]` stands for instances to come.
 * @example instanceText("load", 3, "north"); // "load[3] north"
 */
export function instanceText(taskId: string, mapIndex: number, label: string | null): string {
  if (mapIndex < 0) return label === null ? taskId : `${taskId}[${label}]`;
  return `${taskId}[${mapIndex}]${label === null || label === String(mapIndex) ? "" : ` ${label}`}`;
}

/**
 * Returns the known name within two edits, if any.
 * @example nearest("regoin", ["region", "days"]); // "region"
 */
export function nearest(name: string, names: readonly string[]): string | undefined {
  const ranked = names.map((known) => ({
    known,
    edits: editDistance(name.toLowerCase(), known.toLowerCase()),
  }));
  ranked.sort((a, b) => a.edits - b.edits);
  return ranked[0] && ranked[0].edits <= 2 ? ranked[0].known : undefined;
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(change, row[j]! + 1, next[j - 1]! + 1);
    }
    row = next;
  }
  return row[b.length]!;
}

/**
 * Separates a message from its cause: "fetch failed (cause: connect ECONNREFUSED 127.0.0.1:1999)".
 * @example "fetch failed (cause: timeout)".split(CAUSE_MARK)[0]; // "fetch failed"
 */
export const CAUSE_MARK = " (cause: ";

/**
 * Formats an error for a log, with its code (see docs/errors.md) at the end of the first line.
 * @example errorText({ name: "TaskError", message: "no", stack: null, code: "TW_X" }); // "TaskError: no [TW_X]"
 */
export function errorText({ name, message, stack, code }: ErrorFacts): string {
  // The stack contains the causes.
  const [own = ""] = message.split(CAUSE_MARK, 1);
  const told = stack?.includes(own) ? stack : `${name}: ${message}${stack === null ? "" : `\n${stack}`}`;
  const [first = ""] = told.split("\n", 1);
  // Some messages contain the code: "ENOENT: no such file".
  if (code === null || !/^\w+$/.test(code) || first.includes(code)) return told;
  return `${first} [${code}]${told.slice(first.length)}`;
}

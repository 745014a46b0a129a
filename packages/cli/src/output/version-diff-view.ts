/** The differences of two versions of a DAG: `+` added, `-` removed, `~` changed; then the diff of the file. */
import type { FieldChange, PartsDiff, VersionDiff } from "../client/dag-versions.ts";
import { plainLine, type Terminal } from "../terminal.ts";

/** Longer values are cut; --json shows them in full. */
const WIDEST = 60;

export function printVersionDiff(terminal: Terminal, diff: VersionDiff, parts: { source: boolean }): void {
  const { dag_id, from, to } = diff;
  terminal.data(terminal.paint("bold", `${dag_id}: version ${from.version_number} → ${to.version_number}`));
  for (const line of shapeLines(diff)) terminal.data(paintLine(terminal, line));
  if (diff.is_same_shape) terminal.data(sameShape(diff));
  if (!parts.source || diff.source_diff === "") return;
  terminal.data("");
  for (const line of diff.source_diff.trimEnd().split("\n"))
    terminal.data(paintLine(terminal, plainLine(line)));
}

function sameShape({ is_same_code, source_diff }: VersionDiff): string {
  if (is_same_code) return "Nothing differs.";
  return source_diff === ""
    ? "The file is unchanged; code that it imports has changed."
    : "Tasks, edges and options are unchanged; only code has changed.";
}

function* shapeLines({ options, tasks, edges, groups, maps }: VersionDiff): Iterable<string> {
  for (const change of options) yield `~ ${changeText(change)}`;
  yield* partLines("task", tasks);
  yield* partLines("group", groups);
  yield* partLines("map", maps);
  for (const edge of edges.added) yield plainLine(`+ edge ${edge.from} → ${edge.to}`);
  for (const edge of edges.removed) yield plainLine(`- edge ${edge.from} → ${edge.to}`);
}

function* partLines(kind: string, { added, removed, changed }: PartsDiff): Iterable<string> {
  for (const id of added) yield plainLine(`+ ${kind} ${id}`);
  for (const id of removed) yield plainLine(`- ${kind} ${id}`);
  for (const { id, fields } of changed)
    yield plainLine(`~ ${kind} ${id}: ${fields.map(changeText).join(", ")}`);
}

function changeText({ field, from, to }: FieldChange): string {
  return plainLine(`${field} ${valueText(from)} → ${valueText(to)}`);
}

function valueText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  const text = JSON.stringify(value);
  return text.length > WIDEST ? `${text.slice(0, WIDEST)}…` : text;
}

function paintLine(terminal: Terminal, line: string): string {
  if (/^(?:\+\+\+|---) /.test(line)) return terminal.paint("bold", line);
  if (line.startsWith("+")) return terminal.paint("green", line);
  if (line.startsWith("-")) return terminal.paint("red", line);
  return line.startsWith("@@") ? terminal.paint("cyan", line) : line;
}

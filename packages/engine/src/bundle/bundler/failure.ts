/** Turns whatever stopped a file into a message that points at the author's own line. */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { basename, isAbsolute, relative, resolve, sep } from "node:path";
import type { BuildFailure, Message } from "esbuild";
import { ENTRY } from "./artefact.ts";
import { type Position, withCodeFrame } from "./code-frame.ts";
import { DagRefused } from "./dag-exports.ts";
import type { DagFile } from "./protocol.ts";

const MAX_ERRORS = 3;
const MAX_STACK_LINES = 8;

/** esbuild's own errors: syntax, imports that lead nowhere. */
export function buildFailureMessage(folder: string, dagFile: DagFile, failure: BuildFailure): string {
  const shown = failure.errors.slice(0, MAX_ERRORS).map((error) => errorMessage(folder, dagFile, error));
  const hidden = failure.errors.length - shown.length;
  if (hidden > 0) shown.push(`… and ${hidden} more`);
  return shown.join("\n\n");
}

export interface ImportedArtefact {
  readonly folder: string;
  /** As it appears in stack traces. */
  readonly url: string;
  readonly map: string;
}

/** Something thrown while the artefact was imported or described. */
export function thrownMessage(dagFile: DagFile, artefact: ImportedArtefact, thrown: unknown): string {
  if (thrown instanceof DagRefused) return `${dagFile.file}: ${thrown.message} [${thrown.code}]`;
  const title = titleOf(thrown);
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : "";
  const frames = mappedFrames(stack, artefact);
  // The author's line, not the line of the library (or of the SDK) that noticed the mistake.
  const authors = frames.filter((frame) => isAuthors(frame.position));
  const own = authors[0] ?? frames[0];
  if (!own) return `${dagFile.file}: ${title}`;
  const text = textOf(resolve(artefact.folder, own.position.file));
  const trace = (authors.length > 0 ? authors : frames)
    .slice(0, MAX_STACK_LINES)
    .map(({ name, position }) => {
      return `    at ${name === "" ? "" : `${name} `}(${position.file}:${position.line}:${position.column + 1})`;
    });
  return `${withCodeFrame(title, own.position, text)}\n\n${trace.join("\n")}`;
}

function titleOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `threw ${String(thrown)}`;
  const { code } = thrown as { code?: unknown };
  const title = `${thrown.name}: ${thrown.message}${typeof code === "string" ? ` [${code}]` : ""}`;
  return isTooEarly(thrown) ? `${title}. ${TOO_EARLY}` : title;
}

const TOO_EARLY = "A task can only use tasks that are defined before it: this keeps cycles out";

/** The language has no code for it, only V8's words. */
function isTooEarly({ name, message }: Error): boolean {
  return name === "ReferenceError" && message.endsWith("before initialization");
}

/** Whether the file's own code is among the callers. */
export function isFrom(dagFile: DagFile, artefact: ImportedArtefact, trace: Error): boolean {
  return mappedFrames(trace.stack ?? "", artefact).some(({ position }) => position.file === dagFile.file);
}

function errorMessage(folder: string, dagFile: DagFile, { text, location, notes }: Message): string {
  const remedy = remedyFor(text, notes);
  const message = `${nameSdk(text)} [${codeOf(text)}]${remedy === null ? "" : `. ${remedy}`}`;
  if (!location) return `${dagFile.file}: ${message}`;
  const isEntry = basename(location.file).startsWith(ENTRY);
  const path = isEntry ? dagFile.path : resolve(folder, location.file);
  const file = isEntry ? dagFile.file : relative(folder, path).replaceAll(sep, "/");
  // esbuild counts columns in bytes.
  const column = Buffer.from(location.lineText).subarray(0, location.column).toString().length;
  return withCodeFrame(message, { file, line: location.line, column }, textOf(path) ?? location.lineText);
}

function codeOf(text: string): string {
  return /^(?:Could not resolve|No matching export)/.test(text) ? "DAG_IMPORT_UNRESOLVED" : "DAG_FILE_SYNTAX";
}

/** The SDK lies in the bundler itself; its authors know it by the name that they import. */
function nameSdk(text: string): string {
  return text.replace(/"tradewind-sdk:[^"]*"/, '"tradewind"');
}

/** esbuild's own note, unless it is for those who choose its options: an author cannot mark a path as external. */
function remedyFor(text: string, notes: Message["notes"]): string | null {
  const note = notes.find((each) => each.text !== "" && !/\bexternal\b/.test(each.text));
  if (note) return note.text;
  const specifier = /^Could not resolve "(.+)"$/.exec(text)?.[1];
  if (specifier === undefined || specifier.startsWith("node:")) return null;
  if (/^\.{0,2}\//.test(specifier)) return "There is no such file: check the path and its ending";
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? [specifier];
  return `Install the package in the DAG's project: npm install ${name}`;
}

interface Frame {
  readonly name: string;
  readonly position: Position;
}

function mappedFrames(stack: string, { url, map }: ImportedArtefact): Frame[] {
  const sourceMap = new SourceMap(JSON.parse(map) as SourceMapPayload);
  const frames: Frame[] = [];
  for (const line of stack.split("\n")) {
    const at = line.lastIndexOf(url);
    if (at < 0) continue;
    const numbers = /:(\d+):(\d+)\)?$/.exec(line);
    if (!numbers) continue;
    const entry = sourceMap.findEntry(Number(numbers[1]) - 1, Number(numbers[2]) - 1);
    if (!("originalSource" in entry) || entry.originalSource === undefined) continue;
    frames.push({
      name: /^\s*at (?:async )?(\S.*?) \(/.exec(line.slice(0, at))?.[1] ?? "",
      position: { file: entry.originalSource, line: entry.originalLine + 1, column: entry.originalColumn },
    });
  }
  return frames;
}

function isAuthors({ file }: Position): boolean {
  return !file.startsWith("../") && !isAbsolute(file) && !file.split("/").includes("node_modules");
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

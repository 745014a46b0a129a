/** Turns the error of a file into a message that points at the author's own line. */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { basename, dirname, isAbsolute, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { BuildFailure, Message } from "esbuild";
import { hintFor } from "../../code/error-hints.ts";
import { ENTRY } from "./artefact.ts";
import { codeFrame, type Position, placeOf, withCodeFrame } from "./code-frame.ts";
import type { DagFile } from "./protocol.ts";
import { DagRefused, SourceRefused } from "./refusal.ts";
import { remedyFor } from "./remedy.ts";
import { NOT_THE_SDK } from "./sdk-copy.ts";

const MAX_ERRORS = 3;
const MAX_THROWN = 20;
const MAX_STACK_LINES = 8;

/** esbuild's own errors: syntax, unresolved imports. */
export function buildFailureMessage(folder: string, dagFile: DagFile, failure: BuildFailure): string {
  const shown = failure.errors.slice(0, MAX_ERRORS).map((error) => errorMessage(folder, dagFile, error));
  const hidden = failure.errors.length - shown.length;
  if (hidden > 0) shown.push(`… and ${hidden} more`);
  for (const { text, location } of failure.warnings)
    if (location?.file.endsWith(".json")) shown.push(`${location.file}:${location.line}: ${text}`);
  return shown.join("\n\n");
}

export interface ImportedArtefact {
  readonly folder: string;
  /** As it appears in stack traces. */
  readonly url: string;
  readonly map: string;
}

/** An error thrown while the artefact was imported or described. Errors about the same line share its code frame. */
export function thrownMessage(dagFile: DagFile, artefact: ImportedArtefact, thrown: unknown): string {
  const places = new Map<string, { readonly titles: string[]; readonly rest: string }>();
  for (const each of separated(thrown)) {
    const { at, title, rest } = thrownPart(dagFile, artefact, each);
    const place = places.get(at) ?? { titles: [], rest };
    place.titles.push(`${at}${title}`);
    places.set(at, place);
  }
  return first(
    [...places.values()].map(({ titles, rest }) => first(titles, "\n") + rest),
    "\n\n",
  );
}

function first(texts: readonly string[], between: string): string {
  const hidden = texts.length - MAX_THROWN;
  return [...texts.slice(0, MAX_THROWN), ...(hidden > 0 ? [`… and ${hidden} more`] : [])].join(between);
}

/** Splits an aggregate: all wrong options of a DAG are reported in one error. */
function separated(thrown: unknown): readonly unknown[] {
  const errors = thrown instanceof Error ? (thrown as { errors?: unknown }).errors : null;
  return Array.isArray(errors) && errors.length > 0 ? errors.flatMap(separated) : [thrown];
}

function thrownPart(dagFile: DagFile, artefact: ImportedArtefact, thrown: unknown) {
  if (thrown instanceof DagRefused)
    return { at: `${dagFile.file}: `, title: `${thrown.message} [${thrown.code}]`, rest: "" };
  const title = titleOf(thrown, artefact);
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : "";
  const frames = mappedFrames(stack, artefact);
  // The author's line, not the line of the library (or of the SDK) that threw the error.
  const authors = frames.filter((frame) => isAuthors(frame.position));
  const own = authors[0] ?? frames[0];
  if (!own) return { at: `${dagFile.file}: `, title, rest: "" };
  const text = textOf(resolve(artefact.folder, own.position.file));
  const trace = (authors.length > 0 ? authors : frames)
    .slice(0, MAX_STACK_LINES)
    .map(({ name, position }) => {
      return `    at ${name === "" ? "" : `${name} `}(${position.file}:${position.line}:${position.column + 1})`;
    });
  const frame = codeFrame(text, own.position);
  return { at: `${placeOf(own.position)}: `, title, rest: `${frame}\n\n${trace.join("\n")}` };
}

/** An error thrown by the bundler, or by the system, before the artefact was imported. */
export function refusalMessage({ file, path }: DagFile, thrown: unknown): string {
  if (thrown instanceof SourceRefused) {
    const folder = path.slice(0, path.length - file.length);
    const lines = thrown.text.slice(0, thrown.at).split("\n");
    const position = {
      file: relative(folder, thrown.path).replaceAll(sep, "/"),
      line: lines.length,
      column: lines.at(-1)?.length ?? 0,
    };
    return withCodeFrame(`${thrown.message} [${thrown.code}]`, position, thrown.text);
  }
  if (thrown instanceof DagRefused) return `${file}: ${thrown.message} [${thrown.code}]`;
  return `${file}: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
}

function titleOf(thrown: unknown, { url }: ImportedArtefact): string {
  if (!(thrown instanceof Error)) return `threw ${String(thrown)}`;
  const { code } = thrown as { code?: unknown };
  const title = `${thrown.name}: ${thrown.message}${typeof code === "string" ? ` [${code}]` : ""}`;
  const hint = isTooEarly(thrown)
    ? TOO_EARLY
    : hintFor({ message: thrown.message, code: typeof code === "string" ? code : null }, fileURLToPath(url));
  return hint === null ? title : `${title}. ${hint}`;
}

const TOO_EARLY = "A task can only use tasks that are defined before it: this keeps cycles out";

/** The error has no code, so V8's message is matched. */
function isTooEarly({ name, message }: Error): boolean {
  return name === "ReferenceError" && message.endsWith("before initialization");
}

/** True if the file's own code is among the callers. */
export function isFrom(dagFile: DagFile, artefact: ImportedArtefact, trace: Error): boolean {
  return mappedFrames(trace.stack ?? "", artefact).some(({ position }) => position.file === dagFile.file);
}

function errorMessage(folder: string, dagFile: DagFile, error: Message): string {
  const { text, location } = error;
  const isEntry = !location || basename(location.file).startsWith(ENTRY);
  const path = isEntry ? dagFile.path : resolve(folder, location.file);
  const remedy = remedyFor(error, dirname(path));
  const message = `${nameSdk(text)} [${codeOf(text)}]${remedy === null ? "" : `. ${remedy}`}`;
  if (!location) return `${dagFile.file}: ${message}`;
  const file = isEntry ? dagFile.file : relative(folder, path).replaceAll(sep, "/");
  // esbuild counts columns in bytes.
  const column = Buffer.from(location.lineText).subarray(0, location.column).toString().length;
  return withCodeFrame(message, { file, line: location.line, column }, textOf(path) ?? location.lineText);
}

function codeOf(text: string): string {
  if (text.startsWith(NOT_THE_SDK)) return "DAG_SDK_UNKNOWN";
  return /^(?:Could not resolve|No matching export)/.test(text) ? "DAG_IMPORT_UNRESOLVED" : "DAG_FILE_SYNTAX";
}

/** The SDK is part of the bundler itself; the message names it as authors import it. */
function nameSdk(text: string): string {
  return text.replace(/"tradewind-sdk:[^"]*"/, '"tradewind"');
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
    const name = /^\s*at (?:async )?(\S.*?) \(/.exec(line.slice(0, at))?.[1] ?? "";
    frames.push({
      // esbuild names the function around a CommonJS file after the file.
      name: name.startsWith(ENTRY) ? "" : name,
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

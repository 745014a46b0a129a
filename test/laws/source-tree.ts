/** The repository's own sources, read once for the laws. */
import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { type Import, importsOf, type Token, tokens } from "./module-scanner.ts";

export interface SourceFile {
  /** From the root of the repository, with forward slashes. */
  readonly path: string;
  readonly lines: number;
  readonly tokens: readonly Token[];
  readonly imports: readonly Import[];
  /** A test, or a file that only tests use. */
  readonly isTest: boolean;
}

export type SourceTree = ReadonlyMap<string, SourceFile>;

const ROOT = join(import.meta.dirname, "../..");
const PATTERNS = [
  "packages/*/{src,test,bin}/**/*.{ts,tsx,mjs}",
  "{bench,examples,scripts,test}/**/*.{ts,mjs}",
];
/** Written by a script, and not committed. */
const GENERATED = /\.gen\.ts$/;
const TEST = /\.(?:test|bench)\.ts$|\/(?:test|testing)\/|^(?:test|bench)\/|-fixture\.ts$/;

export function readTree(): SourceTree {
  const paths = globSync(PATTERNS, { cwd: ROOT })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !GENERATED.test(path));
  return treeOf(Object.fromEntries(paths.map((path) => [path, readFileSync(join(ROOT, path), "utf8")])));
}

/** From path to text: also for trees that exist only to break a law. */
export function treeOf(files: Readonly<Record<string, string>>): SourceTree {
  const paths = Object.keys(files).sort();
  return new Map(paths.map((path) => [path, sourceFile(path, files[path] ?? "")]));
}

export function readPackage(name: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
}

/** The file that a relative import leads to, existing or not; anything else is returned unchanged. */
export function target(file: SourceFile, specifier: string): string {
  return specifier.startsWith(".") ? posix.join(posix.dirname(file.path), specifier) : specifier;
}

function sourceFile(path: string, text: string): SourceFile {
  const list = tokens(text);
  const lines = text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
  return {
    path,
    lines,
    tokens: list,
    imports: importsOf(list),
    isTest: TEST.test(path.replace("packages/testing/", "")),
  };
}

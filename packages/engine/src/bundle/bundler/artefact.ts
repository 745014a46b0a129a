/**
 * A DAG file becomes one self-contained ES module.
 *
 * The bytes of the artefact are its identity, so they depend on code alone: not on comments, not on the file's name,
 * not on where the DAG folder lies. To that end the file is bundled without whitespace (which drops every comment and
 * path) and then printed again in readable form; the paths that CommonJS wrappers keep are shortened to their package.
 */
import { basename, dirname, relative, resolve, sep } from "node:path";
import { CLASSES_EXPORT } from "@tradewind/sdk/program";
import { type BuildFailure, build, type Loader, transform } from "esbuild";
import { artefactHash } from "./artefact-hash.ts";
import { COMMONJS_EXPORTS, moduleEnding, withCommonJsExports } from "./module-kind.ts";
import type { DagFile } from "./protocol.ts";
import { CODE_OPTIONS, OWN_SDK, PRINT_OPTIONS, type SdkPrelude, SdkResolver } from "./sdk-prelude.ts";

/** The code of an artefact is `banner`, then the preludes, then `body`. */
export interface Artefact {
  readonly hash: string;
  readonly banner: string;
  readonly preludes: readonly SdkPrelude[];
  readonly body: string;
  readonly map: string;
  /** Absolute paths of the files the artefact was made from, except the DAG file itself and the SDK. */
  readonly imports: readonly string[];
}

/** Throws esbuild's BuildFailure; the DAG file goes by the name of `ENTRY` in it. `pass`: see `SdkResolver`. */
export async function buildArtefact(folder: string, source: DagSource, pass: number): Promise<Artefact> {
  const { path, text } = source;
  const entry = `${ENTRY}${moduleEnding(path)}`;
  const sdk = new SdkResolver(pass);
  const bundled = await build({
    ...CODE_OPTIONS,
    stdin: { contents: text, resolveDir: dirname(path), sourcefile: entry, loader: loaderOf(path) },
    absWorkingDir: folder,
    outfile: "artefact.mjs",
    format: "esm",
    sourcemap: "inline",
    sourcesContent: false,
    plugins: [sdk.plugin],
    loader: TEXT_LOADERS,
  });
  const printed = await transform(bundled.outputFiles[0]?.text ?? "", {
    ...PRINT_OPTIONS,
    format: "esm",
    sourcemap: "external",
  });
  const preludes = [...sdk.preludes.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const code = withCommonJsExports(shortenPaths(printed.code), ENTRY);
  const body = code + classesExport(code);
  const sdkCode = preludes.map(({ code }) => code).join("");
  const banner = bannerFor(sdkCode + body);
  const map = JSON.parse(printed.map) as { sources: string[]; mappings: string };
  map.sources = map.sources.map((name) => {
    return basename(name) === entry ? slashed(relative(folder, path)) : sourceName(folder, name);
  });
  map.mappings = ";".repeat(lineBreaks(banner) + lineBreaks(sdkCode)) + map.mappings;
  return {
    hash: artefactHash(banner + sdkCode + body),
    banner,
    preludes,
    body,
    map: JSON.stringify(map),
    imports: Object.keys(bundled.metafile.inputs)
      .filter((name) => !name.includes(ENTRY) && !/^(<|tradewind-sdk:)/.test(name))
      .map((name) => resolve(folder, name)),
  };
}

export function lineBreaks(text: string): number {
  return text.split("\n").length - 1;
}

/** A DAG file and the text it has. */
export interface DagSource extends DagFile {
  readonly text: string;
}

/** The name under which the DAG file itself appears in esbuild's messages. */
export const ENTRY = "tradewind_dag";

export function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && Array.isArray((error as Partial<BuildFailure>).errors);
}

const TEXT_LOADERS: Record<string, Loader> = Object.fromEntries(
  [".sql", ".txt", ".md", ".html", ".yaml", ".yml"].map((extension) => [extension, "text"]),
);

/** `"../../x/node_modules/left-pad/index.js"(exports` → `"node_modules/left-pad/index.js"(exports`. */
function shortenPaths(code: string): string {
  return code.replace(
    /(__(?:commonJS|esm)\(\{\s*")([^"\n]*\/)?(node_modules\/[^"\n]*"\()/g,
    (_, head: string, __: string | undefined, tail: string) => head + tail,
  );
}

/**
 * The line that lets a trigger runner find the classes of a bundle, exported or not: wherever a task makes a trigger,
 * the triggerer must find its class again. Classes are recognised by how the printer writes them, at the top level or
 * in the initialiser of a module that is evaluated late; a name that turns out to be something else is harmless.
 */
function classesExport(code: string): string {
  const names = new Set<string>();
  for (const [, declared, assigned] of code.matchAll(CLASS)) names.add(declared ?? assigned ?? "");
  const items = [...names].map((name) => `typeof ${name} === "function" && ${name}`);
  if (code.includes(COMMONJS_EXPORTS)) items.push(`...${COMMONJS_EXPORTS}`);
  if (items.length === 0) return "";
  return `export const ${CLASSES_EXPORT} = () => [${items.join(", ")}];\n`;
}

const CLASS = /^(?:class ([\w$]+)\b|(?:(?:var|let|const) | +)([\w$]+) = class\b)/gm;

/** Packages by their name, whatever the machine keeps them in; an author's file relative to the DAG folder. */
function sourceName(folder: string, name: string): string {
  const inPackage = name.lastIndexOf("node_modules/");
  if (inPackage >= 0) return name.slice(inPackage);
  const inSdk = relative(OWN_SDK, resolve(folder, name));
  return inSdk.startsWith("..") ? name : `node_modules/@tradewind/sdk/${slashed(inSdk)}`;
}

/**
 * What CommonJS packages expect of Node and an ES module does not have. Where code declares one of these names itself,
 * esbuild has renamed that declaration if, and only if, the free name is used as well.
 */
function bannerFor(code: string): string {
  const lines: string[] = [];
  if (code.includes("var __require = ")) {
    lines.push('import { createRequire as __tw_require } from "node:module";');
    lines.push("const require = __tw_require(import.meta.url);");
  }
  for (const [name, property] of [
    ["__dirname", "dirname"],
    ["__filename", "filename"],
  ] as const) {
    if (!code.includes(name)) continue;
    const isDeclared = new RegExp(`\\b(?:var|let|const)\\s+${name}\\b`).test(code);
    if (!isDeclared) lines.push(`const ${name} = import.meta.${property};`);
  }
  return lines.map((line) => `${line}\n`).join("");
}

function loaderOf(path: string): Loader {
  return /\.[cm]?ts$/.test(path) ? "ts" : "js";
}

function slashed(path: string): string {
  return sep === "/" ? path : path.replaceAll(sep, "/");
}

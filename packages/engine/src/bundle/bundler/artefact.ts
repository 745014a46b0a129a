/**
 * A DAG file becomes one self-contained ES module.
 *
 * The bytes of the artefact are its identity, so they depend on code alone: not on comments, the file's name or the
 * location of the DAG folder. The file is therefore bundled without whitespace (which drops every comment and path) and
 * then printed again in readable form; the paths that CommonJS wrappers keep are shortened to their package.
 */
import { readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { CLASSES_EXPORT } from "@tradewind/sdk/program";
import { type BuildFailure, build, type Loader, type Plugin, transform } from "esbuild";
import { artefactHash } from "../../code/artefact-hash.ts";
import { type InstalledPackage, packageOf } from "../../code/installed-package.ts";
import { type Requirements, requirementsLine } from "../../code/requirements.ts";
import { type FileTree, fileTree, type SourceModule } from "./bundle-files.ts";
import { COMMONJS_EXPORTS, moduleEnding, withCommonJsExports } from "./module-kind.ts";
import { loaderOf, PLACE_DEFINES, placeBanner, placed, placingPlugin } from "./module-places.ts";
import { OUTSIDE, OutsidePackages } from "./outside-packages.ts";
import { projectSettings } from "./project-settings.ts";
import type { DagFile } from "./protocol.ts";
import { CODE_OPTIONS, OWN_SDK, PRINT_OPTIONS, type SdkChunk, SdkResolver } from "./sdk-chunk.ts";
import { YAML } from "./yaml-plugin.ts";

/** The code of an artefact is `banner`, then the shared chunks, then `body`. */
export interface Artefact {
  readonly hash: string;
  readonly banner: string;
  readonly sharedChunks: readonly SdkChunk[];
  readonly body: string;
  readonly map: string;
  readonly requirements: Requirements;
  /** The packages that it requires, as they are installed here. */
  readonly installed: readonly InstalledPackage[];
  /** The files that it requires, by their path in its tree. */
  readonly files: FileTree["files"];
  /** Absolute paths of the inputs of the artefact, except the DAG file itself and the SDK. */
  readonly imports: readonly string[];
}

/**
 * Throws esbuild's BuildFailure; in it, the DAG file is named `ENTRY`. `pass`: see `SdkResolver`.
 *
 * Most files are built once. A build that finds packages which cannot be bundled, or modules that name files beside
 * them, is followed by another one.
 */
export async function buildArtefact(folder: string, source: DagSource, pass: number): Promise<Artefact> {
  const settings = projectSettings(dirname(source.path));
  const outside = new OutsidePackages({ dagFolder: folder, path: source.path, pass }, settings.external);
  let tree: FileTree | null = null;
  for (;;) {
    const sdk = new SdkResolver(pass);
    const built = await bundled(folder, source, { plugins: [sdk.plugin, ...outside.begin()], tree });
    if (outside.learn(built)) continue;
    if (built.failure) throw built.failure;
    const imports = Object.keys(built.inputs)
      .filter((name) => !name.includes(ENTRY) && !GENERATED.test(name))
      .map((name) => resolve(folder, name));
    if (tree === null) {
      tree = fileTree([source, ...authorsModules(imports)]);
      if (tree !== null) continue;
    }
    const { installed, ...packages } = outside.requirements();
    const requirements = { ...packages, files: hashes(tree) };
    const sharedChunks = [...sdk.sharedChunks.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    return {
      ...(await printed(folder, source, {
        code: built.code,
        sharedChunks,
        line: requirementsLine(requirements),
      })),
      requirements,
      installed,
      files: tree?.files ?? new Map(),
      imports: [
        ...imports,
        ...installed.map((each) => join(each.folder, "package.json")),
        ...(settings.path === null ? [] : [settings.path]),
        ...(tree?.inputs ?? []),
      ],
    };
  }
}

const GENERATED = new RegExp(`^(?:<|tradewind-sdk:|${OUTSIDE}:)`);

function authorsModules(paths: readonly string[]): SourceModule[] {
  const authors = paths.filter((path) => packageOf(path) === null && /\.[mc]?[jt]sx?$/.test(path));
  return authors.map((path) => ({ path, text: readFileSync(path, "utf8") }));
}

function hashes(tree: FileTree | null): Record<string, string> {
  return Object.fromEntries([...(tree?.files ?? [])].map(([place, { hash }]) => [place, hash]));
}

async function bundled(
  folder: string,
  { path, text }: DagSource,
  { plugins, tree }: { readonly plugins: Plugin[]; readonly tree: FileTree | null },
) {
  const place = tree?.modules.get(path);
  const contents = place === undefined ? text : placed(text, place);
  try {
    const { metafile, outputFiles } = await build({
      ...CODE_OPTIONS,
      ...(tree && { define: PLACE_DEFINES }),
      stdin: { contents, resolveDir: dirname(path), sourcefile: entryOf(path), loader: loaderOf(path) },
      absWorkingDir: folder,
      outfile: "artefact.mjs",
      format: "esm",
      sourcemap: "inline",
      sourcesContent: false,
      plugins: [...plugins, YAML, ...(tree ? [placingPlugin(tree.modules)] : [])],
      loader: TEXT_LOADERS,
    });
    return { inputs: metafile.inputs, code: outputFiles[0]?.text ?? "", errors: [], failure: null };
  } catch (error) {
    if (!isBuildFailure(error)) throw error;
    return { inputs: {}, code: "", errors: error.errors, failure: error };
  }
}

interface Unprinted {
  readonly code: string;
  readonly sharedChunks: readonly SdkChunk[];
  /** The first one. */
  readonly line: string;
}

async function printed(folder: string, { path }: DagSource, unprinted: Unprinted) {
  const { sharedChunks } = unprinted;
  const output = await transform(unprinted.code, { ...PRINT_OPTIONS, format: "esm", sourcemap: "external" });
  const code = withCommonJsExports(shortenPaths(output.code), ENTRY);
  const body = code + classesExport(code);
  const sdkCode = sharedChunks.map(({ code }) => code).join("");
  const banner = unprinted.line + bannerFor(sdkCode + body);
  const map = JSON.parse(output.map) as { sources: string[]; mappings: string };
  map.sources = map.sources.map((name) => {
    return basename(name) === entryOf(path) ? slashed(relative(folder, path)) : sourceName(folder, name);
  });
  map.mappings = ";".repeat(lineBreaks(banner) + lineBreaks(sdkCode)) + map.mappings;
  return {
    hash: artefactHash(banner + sdkCode + body),
    banner,
    sharedChunks,
    body,
    map: JSON.stringify(map),
  };
}

export function lineBreaks(text: string): number {
  return text.split("\n").length - 1;
}

/** A DAG file and its text. */
export interface DagSource extends DagFile {
  readonly text: string;
}

/** The name of the DAG file in esbuild's messages. */
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
 * The line that lets a trigger runner find the classes of a bundle, exported or not: the triggerer must find the class of
 * every trigger that a task creates. Classes are recognized by how the printer writes them, at the top level or in the
 * initializer of a module that is evaluated late; a name that is not a class is harmless.
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

/** Packages by their name, wherever they are installed; an author's file relative to the DAG folder. */
function sourceName(folder: string, name: string): string {
  const inPackage = name.lastIndexOf("node_modules/");
  if (inPackage >= 0) return name.slice(inPackage);
  const inSdk = relative(OWN_SDK, resolve(folder, name));
  return inSdk.startsWith("..") ? name : `node_modules/@tradewind/sdk/${slashed(inSdk)}`;
}

/**
 * Globals of CommonJS that an ES module lacks. Where code declares one of these names itself, esbuild has renamed that
 * declaration if, and only if, the free name is used as well.
 */
function bannerFor(code: string): string {
  const lines = placeBanner(code);
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

function entryOf(path: string): string {
  return `${ENTRY}${moduleEnding(path)}`;
}

function slashed(path: string): string {
  return sep === "/" ? path : path.replaceAll(sep, "/");
}

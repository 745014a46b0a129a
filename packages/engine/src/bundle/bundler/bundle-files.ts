/**
 * The files beside an author's modules that belong to a bundle: the files that the modules name relative to themselves,
 * and all files of the folders that they name. In the bundle they form one tree that contains each module's location, so
 * "../sql/a.sql" from a module still resolves. The tree begins at the lowest common folder, so that neither the location
 * of the DAG folder nor that of the project is part of the bundle.
 */
import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { sha256 } from "../../code/input-stamps.ts";
import { packageOf } from "../../code/installed-package.ts";
import { mayHaveOwnPaths, type OwnPath, ownPaths } from "./own-paths.ts";
import { SourceRefused } from "./refusal.ts";

/** An author's module and its text. */
export interface SourceModule {
  readonly path: string;
  readonly text: string;
}

interface BundleFile {
  readonly hash: string;
  readonly content: Buffer;
}

export interface FileTree {
  /** Paths of modules in the tree, by file path. Only modules that use their own location. */
  readonly modules: ReadonlyMap<string, string>;
  /** By path in the tree. */
  readonly files: ReadonlyMap<string, BundleFile>;
  /** Paths of the files and of the listed folders. */
  readonly inputs: readonly string[];
}

const MAX_FILES = 2_000;
const MAX_BYTES = 32 * 1024 * 1024;

/** Null if the modules name no file. @throws SourceRefused for a path that does not exist, and for too many files. */
export function fileTree(modules: readonly SourceModule[]): FileTree | null {
  const located = modules.filter(({ path, text }) => packageOf(path) === null && mayHaveOwnPaths(text));
  const contents = new Map<string, Buffer>();
  const inputs = new Set<string>();
  for (const module of located)
    for (const named of ownPaths(module.text)) collect(module, named, { contents, inputs });
  if (inputs.size === 0) return null;
  const root = commonFolder([...located.map(({ path }) => path), ...contents.keys()].map(dirname));
  const place = (path: string) => relative(root, path).replaceAll(sep, "/");
  return {
    modules: new Map(located.map(({ path }) => [path, place(path)])),
    files: new Map([...contents].map(([path, content]) => [place(path), { hash: sha256(content), content }])),
    inputs: [...inputs],
  };
}

/** True if a module of a package reads files of its package: such a package cannot be bundled. */
export function readsOwnFiles({ path, text }: SourceModule): boolean {
  return ownPaths(text).some((named) => {
    const target = resolve(dirname(path), named.path);
    // Reading its own version, as many packages do, does not count; most handle a missing file.
    return basename(target) !== "package.json" && statOf(target) !== null;
  });
}

interface Collected {
  readonly contents: Map<string, Buffer>;
  readonly inputs: Set<string>;
}

function collect(module: SourceModule, named: OwnPath, into: Collected): void {
  const path = resolve(dirname(module.path), named.path);
  const stat = statOf(path);
  if (stat === null || (named.isPartial && !stat.isDirectory())) {
    const what = named.isPartial ? "folder" : "file";
    throw new SourceRefused(
      `There is no ${what} ${JSON.stringify(named.path)} beside this module, which names it`,
      { code: "DAG_FILE_MISSING", path: module.path, text: module.text, at: named.at },
    );
  }
  add(path, stat, into);
  const bytes = [...into.contents.values()].reduce((sum, { length }) => sum + length, 0);
  if (into.contents.size > MAX_FILES || bytes > MAX_BYTES) {
    throw new SourceRefused(
      `With ${JSON.stringify(named.path)} the bundle would have more than ${MAX_FILES} files or ${MAX_BYTES / 1024 / 1024} MB beside its code: name the files or folders that it needs, and keep large data elsewhere`,
      { code: "DAG_FILES_TOO_LARGE", path: module.path, text: module.text, at: named.at },
    );
  }
}

function add(path: string, stat: Stats, { contents, inputs }: Collected): void {
  if (inputs.has(path) || contents.size > MAX_FILES) return;
  inputs.add(path);
  if (!stat.isDirectory()) {
    contents.set(path, stat.size > MAX_BYTES ? Buffer.alloc(MAX_BYTES + 1) : readFileSync(path));
    return;
  }
  for (const name of readdirSync(path).sort()) {
    if (name.startsWith(".") || name === "node_modules") continue;
    const inside = join(path, name);
    const found = statOf(inside);
    if (found !== null && (found.isFile() || found.isDirectory())) add(inside, found, { contents, inputs });
  }
}

function statOf(path: string): Stats | null {
  return statSync(path, { throwIfNoEntry: false }) ?? null;
}

function commonFolder(folders: readonly string[]): string {
  const [first = "", ...others] = folders;
  let common = first;
  for (const folder of others)
    while (folder !== common && !folder.startsWith(common.endsWith(sep) ? common : common + sep))
      common = dirname(common);
  return common;
}

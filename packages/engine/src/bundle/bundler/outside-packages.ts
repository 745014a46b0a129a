/**
 * The packages of one DAG file that stay outside its bundle and are resolved from the DAG's project at run time: packages
 * with native code, packages that read files of their own, packages that esbuild cannot bundle, and packages that the
 * project names. A package that uses one of them stays outside, too, up to the package that the author's own code imports:
 * that one resolves from the DAG's project in any layout of node_modules, and the author knows its name.
 *
 * These packages are known only after a build, so a file is built until a build finds no more of them.
 */
import { readFileSync, statSync } from "node:fs";
import { dirname, extname, join, relative, resolve, sep } from "node:path";
import type { Message, Metafile, Plugin } from "esbuild";
import {
  findPackage,
  type InstalledPackage,
  packageNameIn,
  packageOf,
  readPackage,
} from "../../code/installed-package.ts";
import type { Requirements } from "../../code/requirements.ts";
import { readsOwnFiles } from "./bundle-files.ts";
import { isNativePackage } from "./native-package.ts";
import { DagRefused } from "./refusal.ts";

export const OUTSIDE = "tradewind-outside";

const SDK = /^(?:tradewind|@tradewind\/.*)$/;

interface Use {
  readonly name: string;
  /** Where the build found it; null if it was not found. */
  readonly folder: string | null;
  /** The module that imports it. */
  readonly importer: string;
}

/** By folder: a package.json is read once per pass. Findings from one DAG file are not reused for others. */
const verdicts = new Map<string, { readonly pass: number; readonly isNative: boolean }>();

export class OutsidePackages {
  readonly #dagFolder: string;
  readonly #fileFolder: string;
  readonly #named: ReadonlySet<string>;
  readonly #pass: number;
  readonly #uses = new Map<string, Use>();
  /** Packages found to stay outside in addition to those recognized by their package.json. */
  readonly #found = new Set<string>();

  /** @param named The packages that the project names. */
  constructor(
    file: { readonly dagFolder: string; readonly path: string; readonly pass: number },
    named: ReadonlySet<string>,
  ) {
    this.#dagFolder = file.dagFolder;
    this.#fileFolder = dirname(file.path);
    this.#pass = file.pass;
    this.#named = named;
  }

  /** The plugins of the next build: none for most files, because each import that a plugin sees costs time. */
  begin(): Plugin[] {
    this.#uses.clear();
    return this.#named.size + this.#found.size > 0 ? [this.#plugin()] : [];
  }

  /** True if a build has found further packages that must stay outside: then it is repeated. */
  learn({
    inputs,
    errors,
  }: {
    readonly inputs: Metafile["inputs"];
    readonly errors: readonly Message[];
  }): boolean {
    const before = this.#found.size;
    for (const name of Object.keys(inputs))
      this.#judge(
        name,
        (folder) => isNative(folder, this.#pass) || needsItsFiles(resolve(this.#dagFolder, name)),
      );
    for (const { location } of errors) if (location) this.#judge(location.file, () => true);
    for (const { importer } of this.#uses.values()) this.#judge(importer, () => true);
    return this.#found.size > before;
  }

  /** The requirements of the last build. @throws DagRefused for a package that is not found from the DAG's folder. */
  requirements(): Pick<Requirements, "folder" | "packages"> & {
    readonly installed: readonly InstalledPackage[];
  } {
    const installed = new Map<string, InstalledPackage>();
    let folder = "";
    for (const { folder: built, importer, name } of this.#uses.values()) {
      const found = findPackage(name, this.#fileFolder);
      if (found === null || (built !== null && found.folder !== built)) {
        const where = relative(this.#dagFolder, importer).replaceAll(sep, "/");
        const other = found === null ? "none is found" : `another one is found (${found.folder})`;
        throw new DagRefused(
          `package "${name}", which ${where} imports, stays outside of the bundle, and ${other} from ${this.#fileFolder} upwards: install it in the DAG's project: npm install ${name}.`,
          "PACKAGE_MISSING",
        );
      }
      installed.set(name, found);
      if (findPackage(name, this.#dagFolder)?.folder !== found.folder)
        folder = relative(this.#dagFolder, this.#fileFolder).replaceAll(sep, "/");
    }
    const packages = Object.fromEntries([...installed].map(([name, { version }]) => [name, version]));
    return { packages, folder, installed: [...installed.values()] };
  }

  #plugin(): Plugin {
    return {
      name: OUTSIDE,
      setup: (esbuild) => {
        esbuild.onResolve(
          { filter: /^(?:[@\w]|\.[^./])/ },
          async ({ importer, kind, namespace, path, pluginData, resolveDir }) => {
            if (namespace === OUTSIDE) return { path, external: true };
            const name = packageNameIn(path);
            // The SDK's plugin resolves it; calling it from here would recurse.
            if (name === null || pluginData === OUTSIDE || SDK.test(name)) return undefined;
            const options = { importer, kind, namespace, resolveDir, pluginData: OUTSIDE };
            const found = await esbuild.resolve(path, options);
            const folder = found.errors.length > 0 ? null : (packageOf(found.path)?.folder ?? null);
            if (!this.#named.has(name) && (folder === null || !this.#isOutside(folder))) return undefined;
            this.#uses.set(`${name}\n${importer}`, {
              name,
              folder,
              importer: importer || join(resolveDir, "_"),
            });
            // As if bundled: an import of CommonJS exposes every member by its name, also members that Node does not detect.
            if (kind === "import-statement" && isCommonJs(found.path)) return { path, namespace: OUTSIDE };
            return { path, external: true };
          },
        );
        esbuild.onLoad({ filter: /.*/, namespace: OUTSIDE }, ({ path }) => ({
          contents: `module.exports = require(${JSON.stringify(path)});`,
          loader: "js",
        }));
      },
    };
  }

  #judge(path: string, isToStay: (folder: string) => boolean): void {
    const found = packageOf(resolve(this.#dagFolder, path));
    if (found !== null && !SDK.test(found.name) && isToStay(found.folder)) this.#found.add(found.folder);
  }

  #isOutside(folder: string): boolean {
    return this.#found.has(folder) || isNative(folder, this.#pass);
  }
}

const readers = new Map<string, { readonly stamp: string; readonly isReader: boolean }>();

function needsItsFiles(path: string): boolean {
  if (!/\.[mc]?js$/.test(path)) return false;
  const { mtimeMs, size } = statSync(path);
  const stamp = `${mtimeMs} ${size}`;
  const known = readers.get(path);
  const verdict =
    known?.stamp === stamp
      ? known
      : { stamp, isReader: readsOwnFiles({ path, text: readFileSync(path, "utf8") }) };
  readers.set(path, verdict);
  return verdict.isReader;
}

function isNative(folder: string, pass: number): boolean {
  const known = verdicts.get(folder);
  const verdict = known?.pass === pass ? known : { pass, isNative: isNativePackage(folder) };
  verdicts.set(folder, verdict);
  return verdict.isNative;
}

/** By Node's rules. */
function isCommonJs(path: string): boolean {
  if (extname(path) === ".cjs") return true;
  if (extname(path) !== ".js") return false;
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    const about = readPackage(folder);
    if (about !== null) return about["type"] !== "module";
  }
  return true;
}

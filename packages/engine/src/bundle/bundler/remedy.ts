/** The remedy for an import that esbuild cannot resolve. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Message } from "esbuild";
import { VERSION } from "../../version.ts";
import { sdkCopy } from "./sdk-copy.ts";

/** `folder`: the folder of the file that has the import. */
export function remedyFor({ text, notes }: Pick<Message, "text" | "notes">, folder: string): string | null {
  const copy = /^No matching export in "tradewind-sdk:([^"]*)"/.exec(text)?.[1];
  if (copy !== undefined) return otherVersion(copy);
  const specifier = /^Could not resolve "(.+)"$/.exec(text)?.[1];
  // Notes about esbuild's options are skipped: an author cannot mark a path as external.
  const note = notes.find((each) => each.text !== "" && !/\bexternal\b/.test(each.text))?.text;
  if (specifier === undefined) return note ?? null;
  const name = packageName(specifier);
  const missing = note && /^The module "(.+)" was not found on the file system/.exec(note)?.[1];
  if (missing && name !== null) return notBuilt(name, missing);
  if (note?.endsWith(":")) return `${note.slice(0, -1)}; "exports" in its package.json lists what is`;
  if (note !== undefined) return note;
  if (specifier.startsWith("node:")) return null;
  if (/^\.{0,2}\//.test(specifier)) return "There is no such file: check the path and its ending";
  if (specifier.startsWith("#"))
    return 'Add it to "imports" in the package.json of the project, or to "paths" in its tsconfig.json';
  if (name === null) return `A path alias needs ${aliasIn(folder)}`;
  const installed = upwards(folder, join("node_modules", name, "package.json"));
  if (installed !== null) return notBuilt(name, mainOf(installed));
  const install = `Install the package in the DAG's project: npm install ${name}`;
  return upwards(folder, name) === null
    ? install
    : `${install}; or, for the folder "${name}", ${aliasIn(folder)}`;
}

/** The name of a package; null if it cannot be one (`@/db`, `~/db`, `$lib`). */
function packageName(specifier: string): string | null {
  return /^(?:@[a-z0-9-][\w.-]*\/)?[a-z0-9-][\w.-]*(?=\/|$)/i.exec(specifier)?.[0] ?? null;
}

function notBuilt(name: string, file: string): string {
  return `The package "${name}" is installed, but its file ${file} does not exist: build the package, or name its TypeScript source in its package.json`;
}

function mainOf(packageFile: string): string {
  try {
    const { main } = JSON.parse(readFileSync(packageFile, "utf8")) as { main?: unknown };
    return typeof main === "string" ? main : "index.js";
  } catch {
    return "index.js";
  }
}

function aliasIn(folder: string): string {
  const found = upwards(folder, "tsconfig.json");
  if (found !== null) return `an entry in "paths" of ${found} that leads to a file`;
  return 'a tsconfig.json with "paths", beside the file or in a folder above it';
}

function upwards(folder: string, name: string): string | null {
  for (let at = folder; ; at = dirname(at)) {
    const path = join(at, name);
    if (existsSync(path)) return path;
    if (at === dirname(at)) return null;
  }
}

/** A name that the project's own copy of the SDK does not export. */
function otherVersion(path: string): string | null {
  const copy = sdkCopy(path);
  if (copy === null || copy.version === VERSION) return null;
  return `The project has "${copy.name}" ${copy.version} in ${copy.folder}, the engine has ${VERSION}: install ${VERSION} in the project`;
}

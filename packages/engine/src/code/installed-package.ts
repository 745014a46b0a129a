/** Packages as they are installed on this machine. */
import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, sep } from "node:path";

export interface InstalledPackage {
  readonly name: string;
  /** The real path, with links resolved. */
  readonly folder: string;
  readonly version: string;
}

const IN_MODULES = /^(.*[\\/]node_modules[\\/])((?:@[^\\/]+[\\/])?[^\\/]+)(?=[\\/]|$)/s;

/** The package that an import of `name` in this folder resolves to; null if it is not installed. */
export function findPackage(name: string, from: string): InstalledPackage | null {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, "node_modules", name);
    const version = versionIn(path);
    if (version !== null) return { name, folder: realpathSync(path), version };
    if (dirname(folder) === folder) return null;
  }
}

/** The package that a file belongs to; null for an author's own code. */
export function packageOf(path: string): { readonly name: string; readonly folder: string } | null {
  const [folder, , name] = IN_MODULES.exec(path) ?? [];
  return folder === undefined || name === undefined ? null : { name: name.replaceAll(sep, "/"), folder };
}

/** "@scope/name/file.js" → "@scope/name"; null: a path, an address or a module of Node itself. */
export function packageNameIn(specifier: string): string | null {
  if (/^(?:\.{0,2}\/|\.{1,2}$|[a-zA-Z][\w+.-]+:)/.test(specifier)) return null;
  return /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? null;
}

/** The package.json of a folder; null if there is none. */
export function readPackage(folder: string): Readonly<Record<string, unknown>> | null {
  try {
    const text = readFileSync(join(folder, "package.json"), "utf8");
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return null;
  }
}

/** A package without a version still gets one for comparison. */
function versionIn(folder: string): string | null {
  const found = readPackage(folder);
  if (found === null) return null;
  return typeof found["version"] === "string" ? found["version"] : "0.0.0";
}

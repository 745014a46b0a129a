/**
 * Loads a module that the operator has named in the configuration. It runs in the process itself: it is part of the
 * installation, chosen like the database, and not the code of a DAG.
 */
import { createRequire } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** @param name A path, or the name of a package, which is looked up from `folder`, then beside the engine. */
export async function importConfigured(
  name: string,
  folder = process.cwd(),
): Promise<{ readonly default?: unknown }> {
  return (await import(locate(name, folder))) as { readonly default?: unknown };
}

function locate(name: string, folder: string): string {
  if (isAbsolute(name) || /^\.\.?[\\/]/.test(name)) return pathToFileURL(resolve(folder, name)).href;
  try {
    return pathToFileURL(createRequire(join(folder, "package.json")).resolve(name)).href;
  } catch {
    return name;
  }
}

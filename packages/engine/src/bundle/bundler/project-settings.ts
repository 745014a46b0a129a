/** The settings in the package.json of a DAG's project: `"tradewind": { "external": ["name"] }`. */
import { dirname, join } from "node:path";
import { readPackage } from "../../code/installed-package.ts";
import { isPackageName } from "../../code/requirements.ts";
import { DagRefused } from "./refusal.ts";

export interface ProjectSettings {
  /** The package.json; null if there is none from the DAG file's folder upwards. */
  readonly path: string | null;
  /** Packages resolved at run time, in addition to the recognized ones. */
  readonly external: ReadonlySet<string>;
}

/** The settings of the nearest package.json. @throws DagRefused */
export function projectSettings(from: string): ProjectSettings {
  for (let folder = from; ; folder = dirname(folder)) {
    const about = readPackage(folder);
    if (about !== null) return read(join(folder, "package.json"), about["tradewind"]);
    if (dirname(folder) === folder) return { path: null, external: new Set() };
  }
}

function read(path: string, settings: unknown): ProjectSettings {
  if (settings === undefined) return { path, external: new Set() };
  const wrong = (what: string) =>
    new DagRefused(`${path}: ${what}. Write "tradewind": { "external": ["package"] }.`, "PROJECT_INVALID");
  if (typeof settings !== "object" || settings === null || Array.isArray(settings))
    throw wrong('"tradewind" must be an object');
  const unknown = Object.keys(settings).find((key) => key !== "external");
  if (unknown !== undefined) throw wrong(`"tradewind" has the unknown key ${JSON.stringify(unknown)}`);
  const { external = [] } = settings as { external?: unknown };
  if (!Array.isArray(external)) throw wrong('"external" must be a list of package names');
  for (const name of external as unknown[]) {
    if (typeof name !== "string" || !isPackageName(name))
      throw wrong(`${JSON.stringify(name)} in "external" is not a package name`);
    if (/^(?:tradewind$|@tradewind\/)/.test(name))
      throw wrong(`"${name}" cannot be external: a bundle contains the SDK that it was made with`);
  }
  return { path, external: new Set(external as string[]) };
}

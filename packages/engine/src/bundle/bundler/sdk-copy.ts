/** The package of a copy of the SDK: a project may have one of its own, of any version. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { VERSION } from "../../version.ts";

export interface SdkCopy {
  readonly name: string;
  readonly version: string;
  readonly folder: string;
}

export function sdkCopy(path: string): SdkCopy | null {
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) {
    try {
      const file = readFileSync(join(folder, "package.json"), "utf8");
      const { name, version } = JSON.parse(file) as { name?: unknown; version?: unknown };
      return { name: String(name), version: String(version ?? "(without a version)"), folder };
    } catch {
      // The package.json is further up.
    }
  }
  return null;
}

/** The start of the message about a package of that name that is not the SDK, or a version without `dag()`. */
export const NOT_THE_SDK = "Not the SDK of Tradewind:";

export function notTheSdk(path: string): string {
  const copy = sdkCopy(path);
  const found = copy === null ? path : `"${copy.name}" ${copy.version} in ${copy.folder}`;
  return `${NOT_THE_SDK} ${found} does not export dag(). Install version ${VERSION} in the project, or remove the package: without it, DAG files get the copy of the engine`;
}

/**
 * The packages that bundles require, as installed on this machine. They are resolved from the folders of the process and
 * the folders above, and only the version that a bundle was built with is accepted: other code must not run under the
 * name of a version of a DAG.
 */
import { statSync } from "node:fs";
import { dirname, join } from "node:path";
import { EngineError } from "../service/errors.ts";
import { findPackage, type InstalledPackage } from "./installed-package.ts";
import type { Requirements } from "./requirements.ts";

/** A required package is missing, or another version of it is installed. */
export class PackageError extends EngineError {}

/** @throws PackageError */
export function requiredPackages(
  { folder, packages }: Pick<Requirements, "folder" | "packages">,
  folders: readonly string[],
): InstalledPackage[] {
  const searched = [
    ...new Set(folders.flatMap((root) => (folder === "" ? [root] : [join(root, folder), root]))),
  ];
  return Object.entries(packages).map(([name, version]) => {
    const found = searched.flatMap((from) => findPackage(name, from) ?? []);
    const right = found.find((each) => each.version === version);
    if (right !== undefined) return right;
    throw found[0] === undefined ? missing(name, version, searched) : otherVersion(version, found[0]);
  });
}

/** A text that changes when a package is installed again. */
export function packageStamp(packages: readonly InstalledPackage[]): string {
  return packages
    .map(({ folder }) => {
      const stat = statSync(join(folder, "package.json"), { throwIfNoEntry: false });
      return `${folder} ${stat?.mtimeMs} ${stat?.size} ${stat?.ino}`;
    })
    .join("\n");
}

function missing(name: string, version: string, searched: readonly string[]): PackageError {
  const [project = process.cwd()] = searched;
  return new PackageError(
    "PACKAGE_MISSING",
    `Package "${name}" ${version}, which this version of the DAG requires, is not installed on this machine. ` +
      `Searched: node_modules of ${searched.join(", ")} and of the folders above. ` +
      `Install it in the DAG's project: cd ${project} && npm install ${name}@${version}`,
    { details: { package: name, wanted: version, found: null, searched } },
  );
}

function otherVersion(version: string, { folder, name, version: found }: InstalledPackage): PackageError {
  return new PackageError(
    "PACKAGE_VERSION",
    `This version of the DAG requires package "${name}" ${version}, and ${folder} has ${found}. ` +
      `Install the version that it requires: cd ${projectOf(folder)} && npm install ${name}@${version}. ` +
      `Or run the newest version of the DAG, which uses what is installed.`,
    { details: { package: name, wanted: version, found, searched: [folder] } },
  );
}

function projectOf(folder: string): string {
  const at = folder.lastIndexOf("node_modules");
  return at < 0 ? folder : dirname(folder.slice(0, at + 1));
}

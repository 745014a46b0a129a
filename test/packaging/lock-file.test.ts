/** `npm ci` works on every platform: the lock file lists the packages of all of them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

interface Locked {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly os?: readonly string[];
  readonly link?: boolean;
  readonly resolved?: string;
}

const file = readFileSync(join(import.meta.dirname, "../../package-lock.json"), "utf8");
const { packages } = JSON.parse(file) as { packages: Readonly<Record<string, Locked>> };

/** By Node's resolution from the package: in its own folder, then in each folder above. */
function isLocked(name: string, from: string): boolean {
  const parents = from === "" ? [] : from.split("/node_modules/").slice(0, -1);
  const folders = [
    "",
    ...parents.map((_, depth) => parents.slice(0, depth + 1).join("/node_modules/")),
    from,
  ];
  return folders.some((folder) => `${folder === "" ? "" : `${folder}/`}node_modules/${name}` in packages);
}

it("lists every optional package of every locked package", () => {
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !isLocked(name, path))
      .map((name) => `${name} of ${path}`),
  );
  expect(missing).toEqual([]);
  const systems = new Set(Object.values(packages).flatMap(({ os = [] }) => os));
  expect([...systems]).toEqual(expect.arrayContaining(["darwin", "linux", "win32"]));
});

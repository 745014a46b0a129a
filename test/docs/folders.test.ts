/** The folders of docs/architecture.md match the source tree. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const text = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");

it.each(["engine", "sdk", "cli", "testing"])("architecture.md lists the folders of packages/%s", (name) => {
  const table = text.split(`| \`packages/${name}/src\` | owns |\n`)[1]?.split("\n\n", 1)[0] ?? "";
  const listed = [...table.matchAll(/^\| `([\w/-]+)\/` \| (.+) \|$/gm)].map(([, folder]) => folder);
  const source = join(ROOT, "packages", name, "src");
  const folders = readdirSync(source, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath }) => parentPath.slice(source.length + 1))
    .filter((folder) => folder !== "" && hasSource(join(source, folder)));
  expect([...listed].sort()).toEqual([...new Set(folders)].sort());
});

function hasSource(folder: string): boolean {
  return readdirSync(folder).some((file) => /\.(?:ts|sql)$/.test(file) && !file.endsWith(".test.ts"));
}

import { readFile, writeFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * A copy of the bundle whose stacks show the author's own lines. The artefact itself does not name its map: its bytes
 * are its identity.
 */
export async function withSourcePositions(
  bundle: { codePath: string; map: string },
  folder: string,
): Promise<string> {
  const code = await readFile(bundle.codePath, "utf8");
  const parsed = JSON.parse(bundle.map) as { sources: string[]; sourceRoot?: string };
  const sources = parsed.sources.map((source) => pathToFileURL(resolve(folder, source)).href);
  const path = bundle.codePath.replace(/\.mjs$/, ".positions.mjs");
  await writeFile(`${path}.map`, JSON.stringify({ ...parsed, sources, sourceRoot: "" }));
  await writeFile(path, `${code}\n//# sourceMappingURL=${basename(path)}.map\n`);
  return path;
}

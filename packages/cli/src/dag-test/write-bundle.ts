import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { BundleResult } from "@tradewind/engine";

export type Bundled = Extract<BundleResult, { kind: "bundled" }>;

/** Writes the bundle so that stacks show source lines; returns its path. */
export async function writeBundle(bundle: Bundled, from: string, to: string): Promise<string> {
  const sharedChunks = await Promise.all(bundle.sharedChunks.map(({ path }) => readFile(path, "utf8")));
  const map = JSON.parse(bundle.map) as { sources: string[] };
  const sources = map.sources.map((source) => pathToFileURL(resolve(from, source)).href);
  const path = join(to, "dag.mjs");
  const { provideRequirements } = await import("@tradewind/engine");
  await provideRequirements(to, bundle);
  await writeFile(`${path}.map`, JSON.stringify({ ...map, sources, sourceRoot: "" }));
  // The stored artefact does not name its map, because its bytes are its identity. This copy may.
  await writeFile(
    path,
    `${bundle.banner}${sharedChunks.join("")}${bundle.body}\n//# sourceMappingURL=dag.mjs.map\n`,
  );
  return path;
}

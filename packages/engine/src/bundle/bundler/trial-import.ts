/**
 * Imports an artefact cheaply. Evaluating the SDK's shared chunk costs more than the rest of a small DAG file, so a child
 * does it once and shares it with every file; a stand-in with the same number of lines keeps stack positions correct.
 */
import { mkdirSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { BUNDLE_MODULE, linkPackages, writeFileTree } from "../../code/bundle-folder.ts";
import type { SharedChunkFile } from "../../code/bundled.ts";
import { type Artefact, lineBreaks } from "./artefact.ts";
import { noting } from "./made-dags.ts";
import type { SdkChunk } from "./sdk-chunk.ts";

/** An artefact on disk, ready to be imported. */
export interface TrialImport {
  /** As it appears in stack traces. */
  readonly url: string;
  /** Files with the text of its shared chunks, for the processor. */
  readonly sharedChunks: readonly SharedChunkFile[];
  discard(): void;
}

const REGISTRY = Symbol.for("tradewind.bundler.sharedChunks");
const evaluated = new Map<string, Promise<string>>();
let trialImports = 0;

export async function importForTrial(outFolder: string, artefact: Artefact): Promise<TrialImport> {
  const { banner, sharedChunks, body, files: tree, installed } = artefact;
  const files: SharedChunkFile[] = [];
  for (const sharedChunk of sharedChunks)
    files.push({ name: sharedChunk.name, path: await evaluateOnce(outFolder, banner, sharedChunk) });
  const standIns = sharedChunks.map(({ name, code }) => {
    return `const ${name} = globalThis[Symbol.for("${REGISTRY.description}")].${name};${"\n".repeat(lineBreaks(code))}`;
  });
  // Numbered, because Node caches a module, and its failure, for the lifetime of the process.
  const name = `dag-${process.pid}-${++trialImports}`;
  const text = banner + standIns.join("") + body;
  if (installed.length === 0 && tree.size === 0) {
    const path = join(outFolder, `${name}.mjs`);
    writeFileSync(path, text);
    return { url: pathToFileURL(path).href, sharedChunks: files, discard: () => unlinkSync(path) };
  }
  const folder = join(outFolder, name);
  mkdirSync(folder);
  await linkPackages(folder, installed);
  await writeFileTree(
    folder,
    [...tree].map(([place, { content }]) => [place, content] as const),
  );
  const path = join(folder, BUNDLE_MODULE);
  writeFileSync(path, text);
  return {
    url: pathToFileURL(path).href,
    sharedChunks: files,
    discard: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns the path of the shared chunk's text. Named by content: children that write the same file write the same bytes. */
function evaluateOnce(outFolder: string, banner: string, sharedChunk: SdkChunk): Promise<string> {
  let path = evaluated.get(sharedChunk.name);
  if (!path) {
    path = evaluate(outFolder, banner, sharedChunk);
    evaluated.set(sharedChunk.name, path);
  }
  return path;
}

async function evaluate(outFolder: string, banner: string, { name, code }: SdkChunk): Promise<string> {
  const text = join(outFolder, `${name}-${process.pid}.txt`);
  const module = join(outFolder, `${name}-${process.pid}.mjs`);
  writeFileSync(text, code);
  writeFileSync(module, `${banner}${code}export { ${name} };\n`);
  const exports = (await import(pathToFileURL(module).href)) as Record<string, unknown>;
  const registry = globalThis as { [REGISTRY]?: Record<string, unknown> };
  registry[REGISTRY] = { ...registry[REGISTRY], [name]: noting(exports[name]) };
  return text;
}

/**
 * A stored bundle as modules to import. The part that many bundles share, the SDK, becomes a module of its own beside
 * them: a process imports it once for all of them. Otherwise each bundle would take eight times as long to load, and a
 * megabyte of memory.
 */

import type { StoredBundle } from "../store/dag/bundles.ts";
import { artefactHash } from "./artefact-hash.ts";
import { isEmpty, readRequirements } from "./requirements.ts";

export interface BundleText {
  /** Its first line lists its requirements. */
  readonly code: string;
  /** A module that it imports, by this name in the folder of all bundles. */
  readonly sharedChunk: { readonly file: string; readonly code: string } | null;
  /** Reads the content of a required file by hash. Absent for a bundle that requires none. */
  readonly file?: (hash: string) => Promise<Uint8Array>;
}

/** True if the bundle has requirements, and so a folder of its own. */
export function hasFolder(code: string): boolean {
  return !isEmpty(readRequirements(code));
}

/** With its source map at the end, so that stacks name the author's lines. */
export function bundleText({ code, head, sharedChunk, sourceMap }: StoredBundle): BundleText {
  const map = sourceMap === null ? "" : mapComment(sourceMap);
  if (sharedChunk === null) return { code: head + code + map, sharedChunk };
  const folder = hasFolder(head) ? ".." : ".";
  const file = `${SHARED_CHUNK}${sharedChunk.hash}.mjs`;
  const names = `{ ${sharedChunk.names.join(", ")} }`;
  // The same number of lines as the shared chunk: the source map counts them.
  const lines = "\n".repeat(sharedChunk.code.split("\n").length - 1);
  return {
    code: `${head}import ${names} from "${folder}/${file}";${lines}${code}${map}`,
    sharedChunk: { file, code: `${sharedChunk.code}export ${names};\n` },
  };
}

/** True if the code, without the additions of `bundleText`, has this hash. */
export function hasHash({ code, sharedChunk }: BundleText, hash: string): boolean {
  const bare = code.replace(MAP_COMMENT, "");
  if (sharedChunk === null) return artefactHash(bare) === hash;
  const imported = IMPORTS_SHARED_CHUNK.exec(bare);
  if (imported === null || imported[1] !== sharedChunk.file) return false;
  const shared = sharedChunk.code.replace(EXPORTS, "");
  const rest = bare.slice(imported.index + imported[0].length + shared.split("\n").length - 1);
  return artefactHash(bare.slice(0, imported.index) + shared + rest) === hash;
}

/** The name of the module that such a text imports. */
export function sharedChunkFileOf(code: string): string | null {
  return IMPORTS_SHARED_CHUNK.exec(code)?.[1] ?? null;
}

const SHARED_CHUNK = "chunk-";
const NAMES = "\\{ [\\w$]+(?:, [\\w$]+)* \\}";
const IMPORTS_SHARED_CHUNK = new RegExp(
  `^import ${NAMES} from "\\.\\.?/(${SHARED_CHUNK}[0-9a-f]+\\.mjs)";`,
  "m",
);
const EXPORTS = new RegExp(`export ${NAMES};\\n$`);
const MAP_COMMENT = /\n\/\/# sourceMappingURL=data:application\/json;base64,[\w+/=]*\n$/;

/** Paths relative to the DAG folder, which the machine that runs the bundle need not have. */
function mapComment(sourceMap: string): string {
  const map = JSON.parse(sourceMap) as { sources: string[] };
  const named = { ...map, sources: map.sources.map((source) => `dags:/${source}`) };
  const data = Buffer.from(JSON.stringify(named)).toString("base64");
  return `\n//# sourceMappingURL=data:application/json;base64,${data}\n`;
}

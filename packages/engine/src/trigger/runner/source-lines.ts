/**
 * Maps positions in a bundle to its sources. Node does so for thrown errors, but the debugger's frames have positions in
 * the bundle. The watchdog's thread reads the source map from the bundle when it reports a stall.
 */
import { readFileSync } from "node:fs";
import { SourceMap, type SourceMapPayload } from "node:module";
import { fileURLToPath } from "node:url";

/** Bundles whose source maps are cached: a stall is sampled a dozen times. */
const MAX_MAPS = 4;
const MARK = "//# sourceMappingURL=data:application/json;base64,";

export interface CodePlace {
  readonly url: string;
  /** Both from 0. */
  readonly line: number;
  readonly column: number;
}

const maps = new Map<string, SourceMap | null>();

/** As "dags:/sales.ts:3:5", or the position in the bundle if its sources are unknown. */
export function sourceLine({ column, line, url }: CodePlace): string {
  const entry = mapOf(url)?.findEntry(line, column);
  if (entry === undefined || !("originalSource" in entry) || !entry.originalSource)
    return `${url}:${line + 1}:${column + 1}`;
  return `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
}

function mapOf(url: string): SourceMap | null {
  if (!url.startsWith("file:")) return null;
  const known = maps.get(url);
  if (known !== undefined) return known;
  const [oldest] = maps.keys();
  if (maps.size >= MAX_MAPS && oldest !== undefined) maps.delete(oldest);
  const map = readMap(url);
  maps.set(url, map);
  return map;
}

function readMap(url: string): SourceMap | null {
  try {
    const code = readFileSync(fileURLToPath(url), "latin1");
    const at = code.lastIndexOf(MARK);
    if (at < 0) return null;
    const [data = ""] = code.slice(at + MARK.length).split("\n", 1);
    return new SourceMap(JSON.parse(Buffer.from(data, "base64").toString("utf8")) as SourceMapPayload);
  } catch {
    // Without sources, the position in the bundle is used.
    return null;
  }
}

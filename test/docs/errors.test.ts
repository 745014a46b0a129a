import { describe, expect, it } from "vitest";
import { readTree, type SourceFile } from "../laws/source-tree.ts";
import { textOf } from "./guide.ts";

const documented = [...textOf("docs/errors.md").matchAll(/^\| `(\w+)` \|/gm)].map(([, code]) => code ?? "");

/** Texts that look like an error code but are not: environment variables, files, the system's own errors, and settings of other programs. */
const OTHERS = new Set([
  "BRANDES_KOEPF",
  "DATABASE_URL",
  "EAI_AGAIN",
  "ESBUILD_BINARY_PATH",
  "FORCE_COLOR",
  "INCLUDE_CHILDREN",
  "LC_ALL",
  "NODES_AND_EDGES",
  "NODE_COMPILE_CACHE",
  "NODE_ENV",
  "NODE_OPTIONS",
  "NO_COLOR",
  "PG_VERSION",
  "REDIS_URL",
  "WHEN_REQUIRED",
]);

describe("docs/errors.md", () => {
  const used = new Set(
    [...readTree().values()]
      .filter(({ path, isTest }) => !isTest && /^packages\/\w+\/(?:src|bin)\//.test(path))
      .flatMap(codesIn),
  );

  it("lists every code once", () => {
    expect(documented.length).toBeGreaterThan(100);
    expect(documented.filter((code, at) => documented.indexOf(code) !== at)).toEqual([]);
  });

  it("lists every code that the sources use", () => {
    expect([...used].filter((code) => !documented.includes(code)).sort()).toEqual([]);
  });

  it("lists no unused code", () => {
    expect(documented.filter((code) => !used.has(code)).sort()).toEqual([]);
  });
});

/** Every text in capitals with an underscore, and the one-word codes by the call that receives them. */
function codesIn({ tokens }: SourceFile): string[] {
  return tokens.flatMap(({ kind, text }, at) => {
    if (kind !== "string") return [];
    const isCode = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/.test(text) && !text.startsWith("TRADEWIND_");
    const isState = /^TW\d{3}$/.test(text);
    const before = tokens.slice(Math.max(0, at - 4), at).map((token) => token.text);
    const isGiven =
      before.join(" ").endsWith("reason (") || before[0] === "Problem" || before.at(-4) === "Problem";
    const isWord = isGiven && /^[A-Z]{4,}$/.test(text);
    return (isCode && !OTHERS.has(text)) || isState || isWord ? [text] : [];
  });
}

/** The prose of the project avoids the phrases of phrases.ts. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { phrasesIn } from "./phrases.ts";

const ROOT = join(import.meta.dirname, "../..");
const PATTERNS = [
  "*.md",
  "docs/**/*.md",
  "packages/*/{src,test,bin}/**/*.{ts,tsx,mjs,sql,proto}",
  "{bench,examples,scripts,test}/**/*.{ts,mjs}",
];
/** The list itself. */
const LIST = /^test\/laws\/phrases(?:\.test)?\.ts$/;

describe("plain words", () => {
  it("replaces the phrases of test/laws/phrases.ts", () => {
    const paths = globSync(PATTERNS, { cwd: ROOT }).map((path) => path.replaceAll("\\", "/"));
    expect(paths.length).toBeGreaterThan(1_000);
    const uses = paths
      .filter((path) => !LIST.test(path))
      .sort()
      .flatMap((path) =>
        phrasesIn(readFileSync(join(ROOT, path), "utf8")).map(
          ({ instead, line, text }) => `${path}:${line} "${text}" → ${instead}`,
        ),
      );
    expect(uses).toEqual([]);
  });

  it("finds a phrase in the middle of a line", () => {
    expect(phrasesIn("a\nThe owner is told of it.")).toEqual([
      { line: 2, text: "is told", instead: "is notified, receives" },
    ]);
  });
});

import { expect, it } from "vitest";
import { parseIgnore } from "./ignore-rules.ts";

it.each([
  ["drafts/", "drafts", true, true],
  ["drafts/", "drafts", false, false],
  ["drafts/", "team/drafts", true, true],
  ["*.old.ts", "a/b/x.old.ts", false, true],
  ["*.old.ts", "a/b/x.ts", false, false],
  ["/top.ts", "top.ts", false, true],
  ["/top.ts", "a/top.ts", false, false],
  ["a/**/x.ts", "a/b/c/x.ts", false, true],
  ["a/**/x.ts", "a/x.ts", false, true],
  ["a/*/x.ts", "a/b/c/x.ts", false, false],
  ["d?g.ts", "dag.ts", false, true],
  ["*.ts\n!keep.ts", "keep.ts", false, false],
  ["# dag.ts\n\n", "dag.ts", false, false],
  ["a.b", "axb", false, false],
])("%j ignores %s (folder: %s): %s", (text, file, isFolder, expected) => {
  expect(parseIgnore(text).ignores(file, isFolder)).toBe(expected);
});

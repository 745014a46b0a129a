import fc from "fast-check";
import { expect, test } from "vitest";
import { unifiedDiff } from "./line-diff.ts";

const diff = (from: string, to: string) => unifiedDiff({ name: "a", text: from }, { name: "b", text: to });

/** Few different lines, so that the texts share many. */
const text = fc
  .tuple(fc.array(fc.constantFrom("a", "b", "c", "", " ", "-d", "+e"), { maxLength: 40 }), fc.boolean())
  .map(([lines, isEnded]) => lines.join("\n") + (isEnded && lines.length > 0 ? "\n" : ""));

function linesOf(whole: string): string[] {
  return whole.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** Applies a diff to a text, by the rules of the unified format only. */
function patched(from: string, patch: string): string {
  const source = linesOf(from);
  const result: string[] = [];
  let at = 0;
  const lines = patch.split("\n").slice(2, -1);
  lines.forEach((line, index) => {
    const end = lines[index + 1]?.startsWith("\\") ? "" : "\n";
    const head = /^@@ -(\d+),(\d+) \+(\d+),(\d+) @@$/.exec(line);
    if (head) {
      const start = Number(head[1]) - (head[2] === "0" ? 0 : 1);
      while (at < start) result.push(source[at++]!);
      expect(result.length).toBe(Number(head[3]) - (head[4] === "0" ? 0 : 1));
    } else if (line.startsWith("\\")) return;
    else if (line.startsWith("+")) result.push(line.slice(1) + end);
    else {
      expect(line.slice(1) + end).toBe(source[at++]);
      if (line.startsWith(" ")) result.push(line.slice(1) + end);
    }
  });
  return result.concat(source.slice(at)).join("");
}

test("a diff applied to the first text gives the second", () => {
  fc.assert(
    fc.property(text, text, (from, to) => {
      const patch = diff(from, to);
      expect(patch === "").toBe(from === to);
      if (patch !== "") expect(patched(from, patch)).toBe(to);
    }),
    { numRuns: 500 },
  );
});

test("a diff is the shortest possible", () => {
  const longestCommon = (a: string[], b: string[]) => {
    let former = new Array<number>(b.length + 1).fill(0);
    for (const line of a) {
      const row = [0];
      for (const [index, other] of b.entries())
        row.push(line === other ? former[index]! + 1 : Math.max(former[index + 1]!, row[index]!));
      former = row;
    }
    return former.at(-1)!;
  };
  fc.assert(
    fc.property(text, text, (from, to) => {
      const a = linesOf(from);
      const b = linesOf(to);
      const edits = diff(from, to)
        .split("\n")
        .slice(2)
        .filter((line) => /^[-+]/.test(line)).length;
      expect(edits).toBe(a.length + b.length - 2 * longestCommon(a, b));
    }),
  );
});

test("two long texts without a common line are replaced quickly", () => {
  const lines = (word: string) => Array.from({ length: 5_000 }, (_, n) => `${word} ${n}\n`).join("");
  const [from, to] = [`same\n${lines("old")}`, `same\n${lines("new")}`];
  expect(patched(from, diff(from, to))).toBe(to);
});

import { describe, expect, test } from "vitest";
import { foldedRows, groupAt, groupsAround, groupsOf, isUsuallyFolded } from "./log-groups.ts";

const BYTES: Readonly<Record<string, number>> = { ".": 1, "!": 3, "(": 1 | 32, ")": 1 | 64 };
const kindsOf = (text: string) => Uint8Array.from(text, (letter) => BYTES[letter]!);

/** The lines that are shown, with "(" for a title that is folded. */
function shown(text: string, isFolded = isUsuallyFolded): number[] {
  const rows = foldedRows(text.length, groupsOf(kindsOf(text)), isFolded);
  return Array.from({ length: rows.count }, (_, row) => rows.at(row));
}

describe("groups of lines", () => {
  test("are folded once they have ended without an error", () => {
    expect(shown(".(..).")).toEqual([0, 1, 5]);
    expect(shown(".(.!).")).toEqual([0, 1, 2, 3, 5]);
    expect(shown(".(..")).toEqual([0, 1, 2, 3]);
  });

  test("contain groups: an error in the inner one unfolds both", () => {
    expect(shown("(.(.).)")).toEqual([0]);
    expect(shown("(.(!).(..).)")).toEqual([0, 1, 2, 3, 5, 6, 10]);
    expect(shown("(.(.).)", ({ depth }) => depth === 1)).toEqual([0, 1, 2, 5]);
  });

  test("without an end contain the rest, and an end without a beginning is a line", () => {
    expect(shown(".).")).toEqual([0, 1, 2]);
    expect(shown("(.(..).")).toEqual([0, 1, 2, 6]);
  });

  test("lead from a line to its row; from a hidden one to the title", () => {
    const rows = foldedRows(8, groupsOf(kindsOf("..(...).")), isUsuallyFolded);
    expect([0, 2, 3, 5, 6, 7].map((line) => rows.rowOf(line))).toEqual([0, 2, 2, 2, 2, 3]);
    expect(rows.count).toBe(4);
  });

  test("are found by line", () => {
    const groups = groupsOf(kindsOf(".(.(.).)."));
    expect([0, 1, 2, 3, 4, 6, 8].map((line) => groupAt(groups, line)?.first)).toEqual([
      undefined,
      1,
      1,
      3,
      3,
      1,
      undefined,
    ]);
    expect(groupsAround(groups, 4).map(({ first }) => first)).toEqual([3, 1]);
    expect(groupsAround(groups, 3).map(({ first }) => first)).toEqual([1]);
  });
});

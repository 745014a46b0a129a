import { describe, expect, test } from "vitest";
import { cutLines, ordered } from "./copied-text.ts";

describe("cutLines", () => {
  const lines = ["first", "second", "third"];
  test("cuts the first and last line", () => {
    expect(cutLines(lines, { line: 4, column: 2 }, { line: 6, column: 3 })).toBe("rst\nsecond\nthi");
    expect(cutLines(["first"], { line: 4, column: 1 }, { line: 4, column: 3 })).toBe("ir");
  });
  test("leaves out a last line of which nothing is selected", () => {
    expect(cutLines(lines, { line: 4, column: 0 }, { line: 6, column: 0 })).toBe("first\nsecond");
  });
});

test("ordered puts the earlier place first", () => {
  const [a, b] = [
    { line: 2, column: 9 },
    { line: 3, column: 0 },
  ];
  expect(ordered(b, a)).toEqual([a, b]);
  expect(ordered({ line: 2, column: 1 }, a)[1]).toBe(a);
});

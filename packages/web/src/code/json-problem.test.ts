import { expect, it } from "vitest";
import { jsonProblem } from "./json-problem.ts";

const lineOf = (text: string) => jsonProblem(text)?.line ?? null;

it("finds no problem in JSON, and in an empty text", () => {
  expect(["{}", ' [1, "a"]\n', "", "  \n"].map(lineOf)).toEqual([null, null, null, null]);
});

it("finds the line of the first error", () => {
  expect(lineOf('{\n  "a": 1,\n  b: 2\n}')).toBe(3);
  expect(lineOf('{\n  "a": 1\n  "b": 2\n}')).toBe(3);
  expect(lineOf('{\n  "a": [1, 2\n')).toBe(2);
  expect(lineOf("x")).toBe(1);
});

it("says what is wrong without a position, which is shown as a line", () => {
  const problem = jsonProblem('{"a": tru}')!;
  expect(problem.message).not.toMatch(/position|column/);
  expect(problem.to).toBeGreaterThan(problem.from);
});

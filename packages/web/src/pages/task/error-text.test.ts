import { describe, expect, test } from "vitest";
import { dedented, firstUserFrame, splitReason } from "./error-text.ts";

test("splitReason separates the name of an error", () => {
  expect(splitReason("RangeError: a: b")).toEqual({ name: "RangeError", message: "a: b" });
  expect(splitReason("cancelled by ann: too slow")).toEqual({
    name: null,
    message: "cancelled by ann: too slow",
  });
});

describe("firstUserFrame", () => {
  test("passes over packages and Node.js", () => {
    const text = `RangeError: too large
    at check (node:internal/errors:3:1)
    at merge (dags:/node_modules/warehouse/index.js:212:5)
    at mergeDay (dags:/sales/publish.ts:88:11)
    at async run (dags:/sales/other.ts:3:1)`;
    expect(firstUserFrame(text)).toEqual({ file: "sales/publish.ts", line: 88, name: "mergeDay" });
  });

  test("takes the last stack, and functions without a name", () => {
    const text = "at a (dags:/one.ts:1:1)\nretried\n    at <anonymous> (dags:/two.ts:23:11)\ndone";
    expect(firstUserFrame(text)).toEqual({ file: "two.ts", line: 23, name: null });
  });

  test("finds nothing in a text without a stack", () => {
    expect(firstUserFrame("looked at 3 files (of 9)")).toBeNull();
  });
});

test("dedented removes the indent that all lines have", () => {
  expect(dedented(["    a(", "", "      b,", "    );"])).toEqual(["a(", "", "  b,", ");"]);
  expect(dedented(["", "x"])).toEqual(["", "x"]);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { durationMs } from "../schedule/duration.ts";
import { durationText, errorText, nearest } from "./wording.ts";

test.each([
  [0, "0 ms"],
  [40.4, "40 ms"],
  [999, "999 ms"],
  [999.9, "1 s"],
  [3_000, "3 s"],
  [4_993.649, "5 s"],
  [4_920, "4.9 s"],
  [59_990, "1 m"],
  [90_000, "1 m 30 s"],
  [300_000, "5 m"],
  [3_599_999, "1 h"],
  [5_400_000, "1 h 30 m"],
  [604_800_000, "7 d"],
])("formats %d ms as %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test("rounds by less than one sixteenth", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 100 * 366 * 86_400_000 }), (ms) => {
      const parts = durationText(ms).match(/[\d.]+ \w+/g) ?? [];
      const read = parts.reduce((sum, part) => sum + durationMs(part.replace(" ", ""), "read"), 0);
      expect(Math.abs(read - ms)).toBeLessThanOrEqual(Math.max(0.5, ms / 16));
    }),
  );
});

test("finds the nearest name within two edits", () => {
  expect(nearest("retires", ["timeout", "retries", "rule"])).toBe("retries");
  expect(nearest("Hello", ["hello", "help"])).toBe("hello");
  expect(nearest("nope", ["hello", "etl"])).toBeUndefined();
  expect(nearest("x", [])).toBeUndefined();
});

test.each([
  [{ stack: null, code: null }, "TaskError: no"],
  [{ stack: null, code: "TW_X" }, "TaskError: no [TW_X]"],
  [{ stack: "TaskError: no\n    at a.ts:1", code: "TW_X" }, "TaskError: no [TW_X]\n    at a.ts:1"],
  [
    { stack: "AbortError: late\n    at a.ts:1", code: "TW_X" },
    "TaskError: no [TW_X]\nAbortError: late\n    at a.ts:1",
  ],
  [{ stack: "TW_X: no", code: "TW_X" }, "TW_X: no"],
  [{ stack: null, code: "not a\nword" }, "TaskError: no"],
])("appends the code of an error to its first line: %j", (facts, text) => {
  expect(errorText({ name: "TaskError", message: "no", ...facts })).toBe(text);
});

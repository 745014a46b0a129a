import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkOutput } from "./output-check.ts";

class Row {
  readonly id = 1;
}

const circular: { list: unknown[] } = { list: [] };
circular.list.push({ back: circular });

let deep: unknown = 1;
for (let i = 0; i < 100_000; i++) deep = [deep];

test.each<[value: unknown, message: RegExp]>([
  [
    { rows: [0, 1, 2, { at: new Date() }] },
    /^output\.rows\[3\]\.at is a Date; return date\.toISOString\(\) instead$/,
  ],
  [1n, /^output is a bigint/],
  [[Number.NaN], /^output\[0\] is NaN; JSON has only finite numbers/],
  [{ "a-b": Number.NEGATIVE_INFINITY }, /^output\["a-b"\] is -Infinity/],
  [[1, undefined], /^output\[1\] is undefined; return null instead/],
  [{ f() {} }, /^output\.f is a function/],
  [Symbol("x"), /^output is a symbol/],
  [new Map(), /^output is a Map; return a plain object instead/],
  [new Row(), /^output is a Row; return a plain object instead/],
  [Buffer.from("a"), /^output is a Buffer/],
  [Promise.resolve(1), /^output is a Promise/],
  [circular, /^output\.list\[0\]\.back refers back/],
  [deep, /is nested deeper than 200 levels/],
  ["a\u0000b", /^output contains the character U\+0000/],
  [{ "\u0000": 1 }, /^output contains the character U\+0000/],
  ["\ud800", /^output is not well-formed Unicode/],
])("names the place of a value that is not JSON (%#)", (value, message) => {
  expect(() => checkOutput(value)).toThrow(
    expect.objectContaining({ code: "TW_OUTPUT_NOT_JSON", message: expect.stringMatching(message) }),
  );
});

test("copies JSON and omits undefined properties", () => {
  const value = { a: [1, "x", null, true], b: undefined, shared: {} };
  const checked = checkOutput(value);
  expect(checked).toEqual({ a: [1, "x", null, true], shared: {} });
  expect(checked).not.toHaveProperty("b");
  value.a.push("later");
  expect(checked).toMatchObject({ a: [1, "x", null, true] });
  const twice = { same: value.shared, again: value.shared };
  expect(checkOutput(twice)).toEqual({ same: {}, again: {} });
  expect(checkOutput(undefined)).toBeUndefined();
  expect(checkOutput(Object.assign(Object.create(null), { a: 1 }))).toEqual({ a: 1 });
  expect(checkOutput(runInNewContext("({ a: [1] })"))).toEqual({ a: [1] });
});

test("counts the size as UTF-8", () => {
  expect(checkOutput("é".repeat(10), 22)).toBe("é".repeat(10));
  expect(() => checkOutput("é".repeat(11), 22)).toThrow(
    expect.objectContaining({ code: "TW_OUTPUT_TOO_LARGE" }),
  );
  expect(() => checkOutput("x".repeat(21), 22)).toThrow(/23 bytes, at most 22 .*TRADEWIND_OUTPUT_LIMIT/);
});

test("accepts every JSON value unchanged", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!text.includes("\\u0000") && !/\\ud[89a-f]/i.test(text));
      expect(checkOutput(value)).toEqual(JSON.parse(text));
    }),
  );
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseConf, parseDuration, parseInstant, wholeNumber } from "./values.ts";

const folder = mkdtempSync(join(tmpdir(), "tradewind-values-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("parseConf", () => {
  it("accepts a JSON object", () => {
    expect(parseConf('{"region":"eu","n":[1,null]}')).toEqual({ region: "eu", n: [1, null] });
  });

  it("reads a file", () => {
    const file = join(folder, "conf.json");
    writeFileSync(file, '{"a":1}');
    expect(parseConf(`@${file}`)).toEqual({ a: 1 });
  });

  it.each([
    ["[1]", "not an array"],
    ["null", "not null"],
    ["3", "not a number"],
    ["{region: eu}", "not valid JSON"],
    ["@", "has no file name"],
    ["@/nonexistent/conf.json", "does not exist"],
  ])("rejects %s: %s", (text, message) => {
    expect(() => parseConf(text)).toThrowError(
      expect.objectContaining({ exit: 2, message: expect.stringContaining(message) }),
    );
  });
});

it.each([
  ["2026-01-31", "2026-01-31T00:00:00.000Z"],
  ["2026-01-31T08:00", "2026-01-31T08:00:00.000Z"],
  ["2026-01-31 08:00:05", "2026-01-31T08:00:05.000Z"],
  ["2026-01-31T08:00:00+01:00", "2026-01-31T07:00:00.000Z"],
  ["2026-01-31T08:00:00.123Z", "2026-01-31T08:00:00.123Z"],
])("reads the instant %s in UTC, in any local time zone", (text, iso) => {
  expect(parseInstant(text)).toBe(iso);
});

it.each(["yesterday", "31.01.2026", "2026-13-01", "2026-02-30", "2026-01-31T25:00", ""])(
  "rejects the instant %j",
  (text) => {
    expect(() => parseInstant(text)).toThrow("Give a date");
  },
);

it.each([
  ["500ms", 500],
  ["90s", 90_000],
  ["1.5h", 5_400_000],
  ["30d", 2_592_000_000],
])("reads the duration %s", (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

it.each(["30", "d", "-1d", "1 year"])("rejects the duration %s", (text) => {
  expect(() => parseDuration(text)).toThrow("Give a duration");
});

it("accepts whole numbers within bounds only", () => {
  const port = wholeNumber(0, 65535);
  expect(port("8080")).toBe(8080);
  for (const text of ["-1", "65536", "80.5", "8e3", "", "x"])
    expect(() => port(text)).toThrow("whole number");
});

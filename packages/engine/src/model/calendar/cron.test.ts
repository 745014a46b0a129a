import { describe, expect, test } from "vitest";
import { Cron, validateCron } from "./cron.ts";

/** The next fires after an instant, as ISO strings. */
function fires(expression: string, zone: string, after: string, count = 3): string[] {
  const cron = new Cron(expression, zone);
  const found: string[] = [];
  for (let at = Date.parse(after); found.length < count; ) {
    at = cron.next(at);
    found.push(new Date(at).toISOString().replace(":00.000Z", "Z"));
  }
  return found;
}

describe("fields", () => {
  const after = "2026-01-01T00:00Z"; // a Thursday
  test.each([
    ["*/20 * * * *", ["2026-01-01T00:20Z", "2026-01-01T00:40Z", "2026-01-01T01:00Z"]],
    ["5/25 3 * * *", ["2026-01-01T03:05Z", "2026-01-01T03:30Z", "2026-01-01T03:55Z"]],
    ["0 9-17/4 * * MON-FRI", ["2026-01-01T09:00Z", "2026-01-01T13:00Z", "2026-01-01T17:00Z"]],
    ["0 0 1 jan,jul *", ["2026-07-01T00:00Z", "2027-01-01T00:00Z", "2027-07-01T00:00Z"]],
    ["0 0 * * 7", ["2026-01-04T00:00Z", "2026-01-11T00:00Z", "2026-01-18T00:00Z"]],
    ["0 0 L * *", ["2026-01-31T00:00Z", "2026-02-28T00:00Z", "2026-03-31T00:00Z"]],
    ["0 0 ? * 5#2", ["2026-01-09T00:00Z", "2026-02-13T00:00Z", "2026-03-13T00:00Z"]],
    ["0 0 * * FRIL", ["2026-01-30T00:00Z", "2026-02-27T00:00Z", "2026-03-27T00:00Z"]],
    ["0 0 29 2 *", ["2028-02-29T00:00Z", "2032-02-29T00:00Z", "2036-02-29T00:00Z"]],
    // Both day fields are restricted: a match of either is enough.
    ["0 0 13 * FRI", ["2026-01-02T00:00Z", "2026-01-09T00:00Z", "2026-01-13T00:00Z"]],
    // A step counts as unrestricted: both fields have to match.
    ["0 0 */2 * MON", ["2026-01-05T00:00Z", "2026-01-19T00:00Z", "2026-02-09T00:00Z"]],
    ["@daily", ["2026-01-02T00:00Z", "2026-01-03T00:00Z", "2026-01-04T00:00Z"]],
    ["@Weekly", ["2026-01-04T00:00Z", "2026-01-11T00:00Z", "2026-01-18T00:00Z"]],
  ])("%s", (expression, expected) => {
    expect(fires(expression, "UTC", after)).toEqual(expected);
  });

  test("a sixth field in front means seconds", () => {
    expect(fires("*/30 59 23 * * *", "UTC", after, 2)).toEqual([
      "2026-01-01T23:59Z",
      "2026-01-01T23:59:30.000Z",
    ]);
  });
});

test.each([
  ["", "it is empty"],
  ["* * *", "it has 3 fields"],
  ["60 * * * *", 'invalid minute "60"; use 0-59'],
  ["* 24 * * *", 'invalid hour "24"'],
  ["* * 0 * *", 'invalid day of month "0"'],
  ["* * * foo *", 'invalid month "foo"; use 1-12 or jan, feb'],
  ["* * * * 8", 'invalid day of week "8"'],
  ["*/0 * * * *", "must be 1 or more"],
  ["30-10 * * * *", "is reversed"],
  ["1,,2 * * * *", 'invalid minute ""'],
  ["0 0 31 2 *", "no day of any year matches"],
  ["@fortnightly", "unknown nickname; use one of @yearly"],
  ["-5 * * * *", 'invalid minute "-5"'],
])("rejects %j with the reason", (expression, problem) => {
  expect(() => validateCron(expression)).toThrow(problem);
  expect(() => validateCron(expression)).toThrow(expect.objectContaining({ code: "CRON_INVALID" }));
});

test("rejects an unknown zone by name", () => {
  expect(() => validateCron("0 0 * * *", "Mars/Olympus")).toThrow('Time zone "Mars/Olympus" is unknown');
});

describe("when clocks change in Berlin (forward 2026-03-29 02:00, back 2026-10-25 03:00)", () => {
  test("fires once, at the jump, for a daily time in the skipped hour", () => {
    expect(fires("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00Z")).toEqual([
      "2026-03-28T01:30Z",
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
    expect(fires("0,30 2 * * *", "Europe/Berlin", "2026-03-28T02:00Z", 2)).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:00Z",
    ]);
  });

  test("fires at the first occurrence only for a daily time in the repeated hour", () => {
    expect(fires("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", 2)).toEqual([
      "2026-10-25T00:30Z",
      "2026-10-26T01:30Z",
    ]);
    expect(fires("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10Z", 1)).toEqual(["2026-10-26T01:30Z"]);
  });

  test("fires every real hour for an hourly expression", () => {
    expect(fires("0 * * * *", "Europe/Berlin", "2026-03-28T23:30Z", 4)).toEqual([
      "2026-03-29T00:00Z",
      "2026-03-29T01:00Z",
      "2026-03-29T02:00Z",
      "2026-03-29T03:00Z",
    ]);
    expect(fires("30 * * * *", "Europe/Berlin", "2026-10-25T00:00Z")).toEqual([
      "2026-10-25T00:30Z",
      "2026-10-25T01:30Z",
      "2026-10-25T02:30Z",
    ]);
  });
});

test("previous returns the last fire at or before the instant", () => {
  const cron = new Cron("0 2 * * MON", "Europe/Berlin");
  const monday = Date.parse("2026-06-01T00:00Z");
  expect(cron.previous(monday)).toBe(monday);
  expect(cron.previous(monday - 1)).toBe(Date.parse("2026-05-25T00:00Z"));
  // The database clock has microseconds.
  expect(cron.previous(monday + 0.3)).toBe(monday);
  expect(cron.previous(monday - 0.3)).toBe(Date.parse("2026-05-25T00:00Z"));
  expect(new Cron("0 0 29 2 *", "UTC").previous(monday)).toBe(Date.parse("2024-02-29T00:00Z"));
});

import { expect, test } from "vitest";
import { isShownAt, parseBound, readDate, sinceInstant, spanOf, untilInstant } from "./dates.ts";

const span = (text: string, zone: string) => {
  const { from, to } = spanOf(readDate(text)!, zone);
  return `${from.toISOString()} ${to.toISOString()}`;
};

test.each([
  ["2026-11-15", "UTC", "2026-11-15T00:00:00.000Z 2026-11-16T00:00:00.000Z"],
  ["2026-11-15", "Europe/Berlin", "2026-11-14T23:00:00.000Z 2026-11-15T23:00:00.000Z"],
  ["2026-11-15T02:00", "Europe/Berlin", "2026-11-15T01:00:00.000Z 2026-11-15T01:01:00.000Z"],
  ["2026-11-15 02:00:30", "UTC", "2026-11-15T02:00:30.000Z 2026-11-15T02:00:31.000Z"],
  ["2026-11-15T02:00:30.5", "UTC", "2026-11-15T02:00:30.500Z 2026-11-15T02:00:30.501Z"],
  ["2026-11-15T02:00+01:00", "Asia/Tokyo", "2026-11-15T01:00:00.000Z 2026-11-15T01:01:00.000Z"],
  ["2026-11-15T02:00Z", "Asia/Tokyo", "2026-11-15T02:00:00.000Z 2026-11-15T02:01:00.000Z"],
  // A day of 23 hours, a day of 25 hours, and an hour that clocks show twice.
  ["2026-03-29", "Europe/Berlin", "2026-03-28T23:00:00.000Z 2026-03-29T22:00:00.000Z"],
  ["2026-10-25", "Europe/Berlin", "2026-10-24T22:00:00.000Z 2026-10-25T23:00:00.000Z"],
  ["2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z 2026-10-25T01:31:00.000Z"],
])("converts %s in %s to a span of time", (text, zone, expected) => {
  expect(span(text, zone)).toBe(expected);
});

test("matches both instants of a time that clocks show twice, and none in between", () => {
  const date = readDate("2026-10-25T02:30")!;
  const isShown = (iso: string) => isShownAt(date, "Europe/Berlin", iso);
  expect(["00:30", "00:45", "01:30", "01:31"].map((time) => isShown(`2026-10-25T${time}:00Z`))).toEqual([
    true,
    false,
    true,
    false,
  ]);
});

test.each(["2026-02-30", "2026-13-01", "2026-11-15T25:00", "manual__2026-11-15", "@latest", "", "2026"])(
  "rejects the date %j",
  (text) => expect(readDate(text)).toBeNull(),
);

test("reads a bound as a date in the time zone or as an age, and includes the last day", () => {
  const day = parseBound("2026-11-15");
  expect(sinceInstant(day, "Europe/Berlin").toISOString()).toBe("2026-11-14T23:00:00.000Z");
  expect(untilInstant(day, "Europe/Berlin").toISOString()).toBe("2026-11-15T23:00:00.000Z");
  const since = sinceInstant(parseBound("3h"), "UTC").getTime();
  const ago = Date.now() - since;
  expect(ago).toBeGreaterThanOrEqual(3 * 3_600_000);
  expect(ago).toBeLessThan(3 * 3_600_000 + 60_000);
  expect(() => parseBound("yesterday")).toThrow(/such as 2026-01-31 .*3h, 2d/);
});

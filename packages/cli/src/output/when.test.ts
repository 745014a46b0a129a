import { afterEach, expect, it } from "vitest";
import { moment, relativeTime, showDatesIn, span } from "./when.ts";

afterEach(() => showDatesIn("UTC"));

const NOW = Date.parse("2026-03-01T12:00:00Z");

it.each([
  ["2026-03-01T11:59:48Z", "12 s ago"],
  ["2026-03-01T12:05:00Z", "in 5 m"],
  ["2026-03-01T02:00:00Z", "10 h ago"],
  ["2026-02-20T12:00:00Z", "9 d ago"],
  ["2025-12-24T12:00:00Z", "2025-12-24"],
  [null, "-"],
  ["no date", "no date"],
])("tells how far %s is away: %s", (iso, text) => {
  expect(relativeTime(iso, NOW)).toBe(text);
});

it.each([
  [0.0414, "41 ms"],
  [0, "0 ms"],
  [3.24, "3.2 s"],
  [60, "60.0 s"],
  [125, "2 m 5 s"],
  [3600, "1 h"],
  [90_000, "1 d 1 h"],
  [null, "-"],
])("shows %s seconds as %s", (seconds, text) => {
  expect(span(seconds)).toBe(text);
});

it("shows instants in UTC", () => {
  expect(moment("2026-03-01T13:00:00+01:00")).toBe("2026-03-01 12:00:00Z");
  expect(moment("2026-03-01T12:00:00.250Z")).toBe("2026-03-01 12:00:00.250Z");
  expect(moment(null)).toBe("-");
});

it("shows instants in the zone that was chosen, with their offset", () => {
  showDatesIn("Europe/Berlin");
  expect(moment("2026-03-01T12:00:00Z")).toBe("2026-03-01 13:00:00+01:00");
  expect(moment("2026-07-01T12:00:00.250Z")).toBe("2026-07-01 14:00:00.250+02:00");
  expect(relativeTime("2025-12-24T23:30:00Z", NOW)).toBe("2025-12-25");
  showDatesIn("America/St_Johns");
  expect(moment("2026-03-01T12:00:00Z")).toBe("2026-03-01 08:30:00-03:30");
  showDatesIn("Europe/London");
  expect(moment("2026-03-01T00:00:00Z")).toBe("2026-03-01 00:00:00+00:00");
});

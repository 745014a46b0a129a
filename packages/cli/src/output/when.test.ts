import { afterEach, expect, it } from "vitest";
import { dueTime, logTime, moment, relativeTime, showDatesIn, span, withMoments } from "./when.ts";

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
])("shows the distance to %s as %s", (iso, text) => {
  expect(relativeTime(iso, NOW)).toBe(text);
});

it("shows a past due time as now", () => {
  expect(dueTime("2026-02-27T12:00:00Z", NOW)).toBe("now");
  expect(dueTime("2026-03-01T12:05:00Z", NOW)).toBe("in 5 m");
  expect(dueTime(null, NOW)).toBe("-");
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

it("shows instants in the chosen time zone with their offset", () => {
  showDatesIn("Europe/Berlin");
  expect(moment("2026-03-01T12:00:00Z")).toBe("2026-03-01 13:00:00+01:00");
  expect(moment("2026-07-01T12:00:00.250Z")).toBe("2026-07-01 14:00:00.250+02:00");
  expect(relativeTime("2025-12-24T23:30:00Z", NOW)).toBe("2025-12-25");
  showDatesIn("America/St_Johns");
  expect(moment("2026-03-01T12:00:00Z")).toBe("2026-03-01 08:30:00-03:30");
  showDatesIn("Europe/London");
  expect(moment("2026-03-01T00:00:00Z")).toBe("2026-03-01 00:00:00+00:00");
});

it("shows log times in the chosen time zone, with the date unless it is today", () => {
  expect(logTime("2026-03-01T11:04:31.000Z", NOW)).toBe("11:04:31.000Z");
  expect(logTime("2026-02-28T23:30:00.172Z", NOW)).toBe("2026-02-28 23:30:00.172Z");
  showDatesIn("Europe/Berlin");
  expect(logTime("2026-03-01T11:04:31.172Z", NOW)).toBe("12:04:31.172+01:00");
  expect(logTime("2026-02-28T23:30:00.172Z", NOW)).toBe("00:30:00.172+01:00");
  expect(logTime("no date", NOW)).toBe("no date");
});

it("shows the instants of a sentence in the chosen time zone, except those in ids and values", () => {
  const sentence = (at: string) =>
    `It waits on at(at="2026-03-01T12:00:00Z") of scheduled__2026-03-01T12:00:00Z since ${at}, until ${at}.`;
  expect(withMoments(sentence("2026-03-01T12:00:00.250Z"))).toBe(sentence("2026-03-01 12:00:00.250Z"));
  showDatesIn("Asia/Tokyo");
  expect(withMoments(sentence("2026-03-01T12:00:00.000Z"))).toBe(sentence("2026-03-01 21:00:00+09:00"));
});

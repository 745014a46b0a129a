import { expect, it } from "vitest";
import { parseTimeZone } from "./time-zone.ts";

it.each([
  ["Europe/Berlin", "Europe/Berlin"],
  ["europe/berlin", "Europe/Berlin"],
  ["UTC", "UTC"],
  ["local", new Intl.DateTimeFormat().resolvedOptions().timeZone],
])("parses %s as %s", (text, zone) => {
  expect(parseTimeZone(text)).toBe(zone);
});

it.each([
  ["Europe/Berln", 'Did you mean "Europe/Berlin"?'],
  ["Tokyo", 'Did you mean "Asia/Tokyo"?'],
  ["new york", 'Did you mean "America/New_York"?'],
  ["Europe/New_York", 'Did you mean "America/New_York"?'],
  ["the moon base", 'Use an IANA name such as "Europe/Berlin"'],
])("rejects %s: %s", (text, hint) => {
  expect(() => parseTimeZone(text)).toThrow(`Unknown time zone. ${hint}`);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { durationMs } from "./duration.ts";

test.each([
  ["100ms", 100],
  ["5s", 5_000],
  ["10m", 600_000],
  ["5h", 18_000_000],
  ["2d", 172_800_000],
  ["1w", 604_800_000],
  ["1.5h", 5_400_000],
  [250, 250],
  [0, 0],
])("converts %j to %d ms", (given, ms) => {
  expect(durationMs(given, "timeout")).toBe(ms);
});

test.each([
  "",
  "5",
  "5 minutes",
  "5M",
  "-5s",
  "1h30m",
  "ms",
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  "9999999w",
  null,
  {},
])("rejects %j with the name of the option and the remedy", (given) => {
  expect(() => durationMs(given, 'dag "x": timeout')).toThrow(
    expect.objectContaining({
      code: "TW_BAD_DURATION",
      message: expect.stringMatching(/^dag "x": timeout: .* is not a duration; write "100ms", "5s"/),
    }),
  );
});

test("converts whole numbers of any unit exactly", () => {
  const units = fc.constantFrom(["ms", 1], ["s", 1e3], ["m", 6e4], ["h", 36e5], ["d", 864e5], ["w", 6048e5]);
  fc.assert(
    fc.property(fc.nat(1000), units, (count, [unit, size]) => {
      expect(durationMs(`${count}${unit}`, "x")).toBe(count * (size as number));
    }),
  );
});

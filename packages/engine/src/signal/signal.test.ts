import { fitsPattern } from "@tradewind/sdk/signal-names";
import fc from "fast-check";
import { expect, it } from "vitest";
import { readPosition, showPosition } from "./signal.ts";

it("matches like the same pattern as a regular expression", () => {
  const text = fc.stringMatching(/^[ab.]{0,8}$/);
  const pattern = fc.stringMatching(/^[ab.*]{0,6}$/);
  fc.assert(
    fc.property(pattern, text, (wanted, given) => {
      const expression = wanted.replaceAll(".", "\\.").replaceAll("*", ".*");
      expect(fitsPattern(wanted, given)).toBe(new RegExp(`^${expression}$`, "s").test(given));
    }),
    { numRuns: 2_000 },
  );
});

it("reads the positions that it formats, and no others", () => {
  expect(readPosition(showPosition({ tx: "18446744073", id: 7 }))).toEqual({ tx: "18446744073", id: 7 });
  for (const text of ["", "1", "1-", "-1", "01-1", "1-1-1", "a-1", "1-1 ", `${"9".repeat(30)}-1`])
    expect(() => readPosition(text), text).toThrow("Invalid signal log position");
});

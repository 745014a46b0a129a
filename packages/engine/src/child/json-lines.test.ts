import { expect, test } from "vitest";
import { isTooDeep } from "./json-lines.ts";

const nested = (depth: number, inside = "1") => "[".repeat(depth) + inside + "]".repeat(depth);

test("what is nested deeper than it could be written again is refused, whatever its texts say", () => {
  expect(isTooDeep(nested(900))).toBe(false);
  expect(isTooDeep(nested(1_001))).toBe(true);
  expect(isTooDeep(`{"a":${nested(1_000)}}`)).toBe(true);
  expect(isTooDeep(JSON.stringify(nested(5_000)))).toBe(false);
  expect(isTooDeep(JSON.stringify([`"${nested(5_000)}\\"`, `\\\\"${nested(5_000)}`, nested(5_000)]))).toBe(
    false,
  );
  expect(isTooDeep(`["\\\\",${nested(1_001)}]`)).toBe(true);
  expect(isTooDeep(JSON.stringify(Array.from({ length: 5_000 }, () => [[]])))).toBe(false);
  // As far as it says it can be written again: at least that far it can.
  expect(() => JSON.stringify(JSON.parse(nested(1_000)))).not.toThrow();
});

import { expect, test } from "vitest";
import { isTooDeep } from "./json-lines.ts";

const nested = (depth: number, inside = "1") => "[".repeat(depth) + inside + "]".repeat(depth);

test("rejects values that are nested too deeply to be serialized again, with any strings", () => {
  expect(isTooDeep(nested(900))).toBe(false);
  expect(isTooDeep(nested(1_001))).toBe(true);
  expect(isTooDeep(`{"a":${nested(1_000)}}`)).toBe(true);
  expect(isTooDeep(JSON.stringify(nested(5_000)))).toBe(false);
  expect(isTooDeep(JSON.stringify([`"${nested(5_000)}\\"`, `\\\\"${nested(5_000)}`, nested(5_000)]))).toBe(
    false,
  );
  expect(isTooDeep(`["\\\\",${nested(1_001)}]`)).toBe(true);
  expect(isTooDeep(JSON.stringify(Array.from({ length: 5_000 }, () => [[]])))).toBe(false);
  // The limit is safe: values up to it can be serialized again.
  expect(() => JSON.stringify(JSON.parse(nested(1_000)))).not.toThrow();
});

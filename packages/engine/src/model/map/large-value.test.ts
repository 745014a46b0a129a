import type { Json } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { expect, test } from "vitest";
import { apart, type Known, type LargePlace, LargeValue } from "./large-value.ts";

const large = (id: number) =>
  new LargeValue({ id, store: "file:", key: "k", bytes: 1, sha256: "", items: null });

const known: fc.Arbitrary<Known> = fc.letrec<{ known: Known }>((tie) => ({
  known: fc.oneof(
    { maxDepth: 3 },
    fc.jsonValue() as fc.Arbitrary<Known>,
    fc.nat().map(large),
    fc.array(tie("known"), { maxLength: 4 }),
  ),
})).known;

test("apart takes large values out of their places and records where they belong", () => {
  fc.assert(
    fc.property(known, (value) => {
      const places: LargePlace[] = [];
      const root = { value: apart(value, ["value"], places) };
      // Plain JSON now: a copy to another process loses nothing.
      const copy = structuredClone(root) as unknown as Record<string | number, unknown>;
      for (const { at, value: each } of places) {
        let place = copy;
        for (const step of at.slice(0, -1)) place = place[step] as typeof copy;
        expect(place[at.at(-1)!]).toBeNull();
        place[at.at(-1)!] = each;
      }
      expect(copy).toEqual({ value });
    }),
  );
});

test("a JSON value with the shape of a reference stays a value", () => {
  const lookalike: Json = { reference: { ...large(1).reference }, path: [] };
  const places: LargePlace[] = [];
  expect(apart([lookalike], [], places)).toEqual([lookalike]);
  expect(places).toEqual([]);
});

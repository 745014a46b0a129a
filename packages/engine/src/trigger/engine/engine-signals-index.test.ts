import type { SignalArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { expect, it } from "vitest";
import { fitsWait, type SignalFacts } from "../../model/index.ts";
import { WaitIndex } from "./engine-signals-index.ts";

const OPEN = {
  namespace: "default",
  key: "k",
  where: null,
  equals: null,
  inRun: null,
  since: null,
  after: null,
};
const facts = (value: Json): SignalFacts => ({
  namespace: "default",
  key: "k",
  value,
  version: 1,
  from: null,
});

/** Few names and values, so that many patterns match. */
const small: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<Json>(0, 1, "a", "", null, true),
    fc.dictionary(fc.constantFrom("x", "y", "toString"), tie("value"), { maxKeys: 3 }) as fc.Arbitrary<Json>,
    fc.array(tie("value"), { maxLength: 2 }) as fc.Arbitrary<Json>,
  ),
})).value;

const waits: fc.Arbitrary<SignalArgs[]> = fc.array(
  fc
    .record({ where: fc.option(small), equals: fc.option(fc.record({ value: small })) })
    .map((some) => ({ ...OPEN, ...some }) as SignalArgs),
);

it("returns every wait that a signal matches, also after other waits were removed", () => {
  fc.assert(
    fc.property(waits, fc.array(small), fc.array(fc.nat()), (all, values, leaving) => {
      const index = new WaitIndex<{ args: SignalArgs }>();
      const here = all.map((args) => ({ args }));
      for (const wait of here) index.add(wait);
      for (const at of leaving) for (const wait of here.splice(at % (here.length + 1), 1)) index.delete(wait);
      for (const signal of values.map(facts)) {
        const named = index.candidates(signal);
        expect(new Set(named).size).toBe(named.length);
        for (const wait of here) if (fitsWait(wait.args, signal)) expect(named).toContain(wait);
        expect(named.every((wait) => here.includes(wait))).toBe(true);
      }
    }),
  );
});

it("does not return waits for another value", () => {
  const index = new WaitIndex<{ args: SignalArgs }>();
  const wait = (id: number) => ({ args: { ...OPEN, where: { order: { id } } } });
  const all = Array.from({ length: 1_000 }, (_, id) => wait(id));
  for (const each of all) index.add(each);
  expect(index.candidates(facts({ order: { id: 7, more: 1 } }))).toEqual([all[7]]);
  expect(index.candidates(facts({ order: 7 }))).toEqual([]);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { ALL_RULES } from "../../../test/reference/random-dag.ts";
import { judgeByRule, type ReferenceState } from "../../../test/reference/reference-rules.ts";
import { book } from "../run/tally.ts";
import { type Counters, emptyCounters, judge } from "./trigger-rules.ts";

const rule = fc.constantFrom(...ALL_RULES);
const end = fc.constantFrom("success", "failed", "skipped", "upstream_failed", "removed");
const upstream = fc.record({ state: fc.oneof(end, fc.constant("pending" as const)), setup: fc.boolean() });

test("counters give the same verdict as a check of every upstream", () => {
  fc.assert(
    fc.property(rule, fc.array(upstream, { maxLength: 6 }), (name, ups) => {
      const states = ups.map(({ state }): ReferenceState => state);
      const setups = ups.filter(({ setup }) => setup).map(({ state }): ReferenceState => state);
      expect(judge(name, count(ups))).toBe(judgeByRule(name, { states, setups }));
    }),
    { numRuns: 5_000 },
  );
});

test('the verdict "run" never changes when more upstreams end', () => {
  fc.assert(
    fc.property(
      rule,
      fc.array(upstream, { minLength: 1, maxLength: 6 }),
      fc.array(end),
      (name, ups, ends) => {
        fc.pre(judge(name, count(ups)) === "run");
        let next = 0;
        const later = ups.map((up) =>
          up.state === "pending" ? { ...up, state: ends[next++] ?? "success" } : up,
        );
        expect(judge(name, count(later as typeof ups))).toBe("run");
      },
    ),
    { numRuns: 2_000 },
  );
});

test("when all upstreams have ended, only allSkipped can wait, and only because of a removed upstream", () => {
  const ended = fc.array(fc.record({ state: end, setup: fc.boolean() }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(rule, ended, (name, ups) => {
      const isStuck = judge(name, count(ups)) === "wait";
      const mayBeStuck = name === "allSkipped" && ups.some(({ state }) => state === "removed");
      expect(isStuck && !mayBeStuck).toBe(false);
    }),
    { numRuns: 2_000 },
  );
});

function count(ups: readonly { state: ReferenceState; setup: boolean }[]): Counters {
  const counters = emptyCounters();
  for (const { state, setup } of ups) {
    counters.total++;
    if (setup) counters.setupTotal++;
    book(counters, state, { by: 1, setup });
  }
  return counters;
}

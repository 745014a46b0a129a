/** Compares `gather` over random page sizes with a reference that sees all signals at once. */
import type { SignalCondition } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileCondition } from "../signal/signal-condition.ts";
import type { SignalFacts } from "../signal/signal-condition-match.ts";
import {
  type GatheredRun,
  type GatherTerms,
  gather,
  loadGathered,
  portions,
  storedGathered,
} from "./asset-gather.ts";

const URIS = ["a", "b", "c"];
const leaf = (key: string, where: { alias: string } | null = null): SignalCondition => ({
  kind: "signal",
  namespace: "asset",
  key,
  where,
  equals: null,
  inRun: false,
});
const time: SignalCondition = { ...leaf("dag"), namespace: "schedule" } as SignalCondition;
const condition = fc.letrec<{ node: SignalCondition }>((tie) => {
  const of = fc.array(tie("node"), { minLength: 1, maxLength: 3 });
  return {
    node: fc.oneof(
      { maxDepth: 2 },
      fc.constantFrom(...URIS.map((uri) => leaf(uri)), leaf("*", { alias: "n" }), time),
      fc.record({ kind: fc.constant("all" as const), of }),
      fc.record({ kind: fc.constant("any" as const), of }),
    ),
  };
}).node;

const news = fc.record({
  uri: fc.constantFrom(...URIS, "other"),
  partition: fc.constantFrom(null, "p", "q", "__proto__"),
  alias: fc.constantFrom(null, "n"),
  isTime: fc.nat(9).map((n) => n === 0),
});
const signals = fc.array(news, { maxLength: 30 }).map((all) =>
  all.map(
    ({ alias, isTime, partition, uri }, index): SignalFacts => ({
      namespace: isTime ? "schedule" : "asset",
      key: isTime ? "dag" : uri,
      value: isTime ? { runAfter: `t${index}` } : { payload: null, partition, alias, source: null },
      version: index + 1,
      from: null,
    }),
  ),
);
const terms = fc.record<GatherTerms>({
  each: fc.constantFrom("batch", "event"),
  partitioned: fc.boolean(),
});

/** How a reader sees the log: the size of each page, and whether the log ended there. */
const pages = fc.array(fc.record({ size: fc.nat(6), isEnd: fc.boolean() }), { maxLength: 20 });

function run(
  when: SignalCondition,
  how: GatherTerms,
  heard: readonly SignalFacts[],
  parts: readonly { size: number; isEnd: boolean }[],
  most = Number.POSITIVE_INFINITY,
): { runs: GatheredRun[]; left: number[] } {
  const compiled = compileCondition(when);
  const runs: GatheredRun[] = [];
  let stored = storedGathered(new Map());
  let at = 0;
  for (const { isEnd, size } of [...parts, { size: heard.length, isEnd: true }]) {
    const page = heard.slice(at, at + size);
    at += size;
    const before = loadGathered(compiled, how, JSON.parse(JSON.stringify(stored)));
    const done = gather(compiled, how, before, { signals: page, isEnd, most });
    runs.push(...done.runs);
    stored = storedGathered(done.state);
  }
  const left = [...loadGathered(compiled, how, stored).values()].flatMap(({ events }) => events);
  return { runs, left };
}

/** Whether a set of signals makes a condition true, evaluated over all of them at once. */
function isMet(when: SignalCondition, heard: readonly SignalFacts[]): boolean {
  if (when.kind === "all") return when.of.every((each) => isMet(each, heard));
  if (when.kind === "any") return when.of.some((each) => isMet(each, heard));
  return heard.some((signal) => hears(when, signal));
}

function hears(when: SignalCondition, { key, namespace, value }: SignalFacts): boolean {
  if (when.kind === "all" || when.kind === "any")
    return when.of.some((each) => hears(each, { key, namespace, value, version: 0, from: null }));
  if (when.kind !== "signal" || when.namespace !== namespace) return false;
  if (when.key !== "*") return when.key === key;
  return (value as { alias: string | null }).alias === "n";
}

const partitionOf = ({ namespace, value }: SignalFacts): string | null =>
  namespace === "asset" ? (value as { partition: string | null }).partition : null;

describe("gather", () => {
  test("puts every matching event in one run or keeps it, in order", () => {
    fc.assert(
      fc.property(
        condition,
        terms,
        signals,
        pages,
        fc.integer({ min: 1, max: 9 }),
        (when, how, heard, parts, most) => {
          const { left, runs } = run(when, how, heard, parts, most);
          const expected = heard.filter((signal) => signal.namespace === "asset" && hears(when, signal));
          const found = [...runs.flatMap(({ events }) => events), ...left].sort((a, b) => a - b);
          expect(found).toEqual(expected.map(({ version }) => version));
          for (const { events } of runs) expect(events).toEqual(events.toSorted((a, b) => a - b));
          const byVersion = new Map(heard.map((signal) => [signal.version, signal]));
          for (const { events, partition } of runs)
            for (const version of events)
              expect(how.partitioned ? partitionOf(byVersion.get(version)!) : null).toBe(partition);
        },
      ),
    );
  });

  test("with 'event': fires as soon as the condition is true, for any page sizes", () => {
    fc.assert(
      fc.property(condition, fc.boolean(), signals, pages, (when, partitioned, heard, parts) => {
        const how: GatherTerms = { each: "event", partitioned };
        const waiting = new Map<string | null, SignalFacts[]>();
        const expected: number[][] = [];
        for (const signal of heard.filter((each) => hears(when, each))) {
          const key = partitioned ? partitionOf(signal) : null;
          const all = [...(waiting.get(key) ?? []), signal];
          if (isMet(when, all)) {
            expected.push(all.filter(({ namespace }) => namespace === "asset").map(({ version }) => version));
            waiting.delete(key);
          } else waiting.set(key, all);
        }
        expect(run(when, how, heard, parts).runs.map(({ events }) => [...events])).toEqual(expected);
      }),
    );
  });

  test("with 'batch': creates one run where the log ends if the condition is true, and no run otherwise", () => {
    fc.assert(
      fc.property(condition, signals, pages, (when, heard, parts) => {
        const how: GatherTerms = { each: "batch", partitioned: false };
        let waiting: SignalFacts[] = [];
        const expected: number[][] = [];
        let at = 0;
        for (const { isEnd, size } of [...parts, { size: heard.length, isEnd: true }]) {
          waiting.push(...heard.slice(at, at + size).filter((each) => hears(when, each)));
          at += size;
          if (!isEnd || !isMet(when, waiting)) continue;
          expected.push(
            waiting.filter(({ namespace }) => namespace === "asset").map(({ version }) => version),
          );
          waiting = [];
        }
        expect(run(when, how, heard, parts).runs.map(({ events }) => [...events])).toEqual(expected);
      }),
    );
  });
});

test("gather creates no run of one asset with more events than `most`", () => {
  fc.assert(
    fc.property(signals, pages, fc.integer({ min: 1, max: 9 }), (heard, parts, most) => {
      const { runs } = run(leaf("a"), { each: "batch", partitioned: false }, heard, parts, most);
      for (const { events } of runs) expect(events.length).toBeLessThanOrEqual(most);
    }),
  );
});

test("gather keeps the latest time and gives each run a different last version", () => {
  fc.assert(
    fc.property(condition, terms, signals, pages, (when, how, heard, parts) => {
      const { runs } = run(when, how, heard, parts);
      const lasts = runs.map(({ last }) => last);
      expect(new Set(lasts).size).toBe(lasts.length);
      for (const { events, last, time } of runs) {
        expect(last).toBeGreaterThanOrEqual(Math.max(0, ...events));
        if (time !== null) expect(Number(time.slice(1)) + 1).toBeLessThanOrEqual(last);
      }
    }),
  );
});

test("a schedule that is no longer partitioned merges the events of its partitions", () => {
  const compiled = compileCondition({ kind: "all", of: [leaf("a"), leaf("b")] });
  const signal = (version: number, key: string, partition: string): SignalFacts => {
    const value = { payload: null, partition, alias: null, source: null };
    return { namespace: "asset", key, value, version, from: null };
  };
  const apart = gather(compiled, { each: "batch", partitioned: true }, new Map(), {
    signals: [signal(1, "a", "p"), signal(2, "b", "q")],
    isEnd: true,
    most: 10,
  });
  expect(apart.runs).toEqual([]);
  const how: GatherTerms = { each: "batch", partitioned: false };
  const state = loadGathered(compiled, how, storedGathered(apart.state));
  expect(gather(compiled, how, state, { signals: [], isEnd: true, most: 10 }).runs).toMatchObject([
    { events: [1, 2] },
  ]);
});

test("portions keeps all items in order, within both limits", () => {
  const limits = fc.record({
    maxItems: fc.integer({ min: 1, max: 5 }),
    maxSize: fc.integer({ min: 1, max: 20 }),
  });
  fc.assert(
    fc.property(fc.array(fc.nat(30)), limits, (sizes, { maxItems, maxSize }) => {
      const parts = portions(sizes, { maxItems, maxSize, sizeOf: (size) => size });
      expect(parts.flat()).toEqual(sizes);
      for (const part of parts) {
        expect(part.length).toBeLessThanOrEqual(maxItems);
        if (part.length > 1) expect(part.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(maxSize);
      }
      expect(parts.length === 1 || parts.every((part) => part.length > 0)).toBe(true);
    }),
  );
});

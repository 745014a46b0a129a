import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CRASHES_ALONE, CrashSuspects, MAIN, MAX_GROUPS } from "./crash-suspects.ts";

interface Played {
  readonly failed: readonly number[];
  readonly crashes: number;
  readonly survivors: readonly number[];
  /** Crashes of processes in which an innocent trigger ran. */
  readonly harmful: number;
}

interface Play {
  readonly ids: readonly number[];
  /** One kind by default. */
  readonly kindOf?: (id: number) => string;
  /** How long each guilty trigger needs to crash its process. */
  readonly guilty: ReadonlyMap<number, number>;
  /** From 0 to 1, for each crash. */
  readonly chance: () => number;
  /** The trigger that is observed running when a process crashes. */
  readonly seen?: (ids: readonly number[]) => number | null;
  readonly maxCrashes: number;
}

/** Simulates processes that crash when the first guilty trigger in them has run long enough, until no guilty trigger is left. */
function play({ ids, guilty, chance, kindOf = () => "", seen = () => null, maxCrashes }: Play): Played {
  const suspects = new CrashSuspects();
  const failed: number[] = [];
  const alive = new Set(ids);
  /** By group: when its process began. By trigger: its process, and when it would crash that process. */
  const startedAt = new Map<number, number>();
  const place = new Map<number, { group: number; crashAt: number }>();
  let now = 0;
  let crashes = 0;
  let harmful = 0;
  const arrange = (): void => {
    const groups = new Set([...place.values()].map(({ group }) => group));
    for (const id of alive) {
      const group = suspects.groupOf(id);
      if (place.get(id)?.group === group) continue;
      if (!groups.has(group)) startedAt.set(group, now);
      groups.add(group);
      const needsMs = guilty.get(id);
      // Up to 50% longer: a different start and different neighbours.
      const crashAt = needsMs === undefined ? Number.POSITIVE_INFINITY : now + needsMs * (1 + chance() / 2);
      place.set(id, { group, crashAt });
    }
    expect(new Set([...place.values()].map(({ group }) => group)).size).toBeLessThanOrEqual(MAX_GROUPS + 1);
  };
  arrange();
  while (crashes < maxCrashes) {
    const next = [...place].reduce((a, b) => (b[1].crashAt < a[1].crashAt ? b : a), [
      -1,
      { group: MAIN, crashAt: Number.POSITIVE_INFINITY },
    ] as [number, { group: number; crashAt: number }]);
    const acquittal = suspects.nextAcquittal() ?? Number.POSITIVE_INFINITY;
    if (Math.min(next[1].crashAt, acquittal) === Number.POSITIVE_INFINITY) break;
    if (acquittal < next[1].crashAt) {
      now = acquittal;
      suspects.acquit(now);
      arrange();
      continue;
    }
    const { group } = next[1];
    now = next[1].crashAt;
    crashes++;
    const inside = [...place].filter(([, each]) => each.group === group).map(([id]) => id);
    if (inside.some((id) => !guilty.has(id))) harmful++;
    const lifetimeMs = now - (startedAt.get(group) ?? 0);
    const condemned = suspects.crashed({
      ...{ group, at: now, lifetimeMs, seen: seen(inside) },
      suspects: inside.map((id) => ({ id, kind: kindOf(id) })),
    });
    if (condemned !== null) {
      expect(inside).toEqual([condemned]);
      failed.push(condemned);
      alive.delete(condemned);
    }
    for (const id of inside) place.delete(id);
    arrange();
  }
  return { failed, crashes, survivors: [...alive], harmful };
}

function sorted(ids: Iterable<number>): number[] {
  return [...ids].sort((a, b) => a - b);
}

const plays = fc
  .record({
    count: fc.integer({ min: 1, max: 120 }),
    kinds: fc.integer({ min: 1, max: 20 }),
    guilty: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 600_000 })), { maxLength: 12 }),
    chances: fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ count, kinds, guilty, chances }) => ({
    ids: Array.from({ length: count }, (_, id) => id),
    guilty: new Map(guilty.map(([id, ms]) => [id % count, ms])),
    kindOf: (id: number) => `${id % kinds}`,
    chance: () => chances.next().value,
  }));

describe("suspects of crashes", () => {
  it("fails every guilty trigger and no other, with a bounded number of processes", () => {
    fc.assert(
      fc.property(plays, (each) => {
        const { failed, survivors } = play({ ...each, maxCrashes: 20_000 });
        expect(sorted(failed)).toEqual(sorted(each.guilty.keys()));
        expect(survivors).toHaveLength(each.ids.length - each.guilty.size);
      }),
      { numRuns: 100 },
    );
  });

  it("fails every trigger of a leaking class with many triggers", () => {
    const ids = Array.from({ length: 200 }, (_, id) => id);
    const guilty = new Map(ids.slice(100, 150).map((id) => [id, 13_000]));
    const kindOf = (id: number) => `class ${Math.floor(id / 50)}`;
    const { failed, crashes, harmful } = play({ ids, guilty, kindOf, chance: () => 0.5, maxCrashes: 5_000 });
    expect(sorted(failed)).toEqual(sorted(guilty.keys()));
    expect(crashes).toBeLessThan(400);
    expect(harmful).toBeLessThan(5);
  });

  it("finds one leak among ten thousand triggers in a few crashes, even a slow one", () => {
    const ids = Array.from({ length: 10_000 }, (_, id) => id);
    for (const culprit of [0, 4_321]) {
      for (const ms of [50, 13_000, 6 * 3_600_000]) {
        const { failed, crashes } = play({
          ...{ ids, guilty: new Map([[culprit, ms]]) },
          ...{ chance: () => 0.3, maxCrashes: 100 },
        });
        expect(failed).toEqual([culprit]);
        expect(crashes).toBeLessThanOrEqual(14 + CRASHES_ALONE);
      }
    }
  });

  it("isolates the observed trigger first, and is not misled if that trigger is innocent", () => {
    const ids = Array.from({ length: 1_000 }, (_, id) => id);
    const guilty = new Map([[500, 20_000]]);
    const facts = { ids, guilty, chance: () => 0.5, maxCrashes: 200 };
    const right = play({ ...facts, seen: (inside) => (inside.includes(500) ? 500 : null) });
    expect(right).toMatchObject({ failed: [500], crashes: 1 + CRASHES_ALONE });
    const wrong = play({ ...facts, seen: ([first = null]) => first });
    expect(wrong.failed).toEqual([500]);
    expect(wrong.crashes).toBeLessThan(20);
  });

  it("acquits all triggers if a process crashed by accident", () => {
    const suspects = new CrashSuspects();
    const four = [1, 2, 3, 4].map((id) => ({ id, kind: "" }));
    const crash = { group: MAIN, suspects: four, at: 100_000, lifetimeMs: 60_000, seen: null };
    expect(suspects.crashed(crash)).toBeNull();
    expect(suspects.size).toBe(4);
    expect(suspects.nextAcquittal()).toBe(280_000);
    suspects.acquit(279_999);
    expect(suspects.size).toBe(4);
    suspects.acquit(280_000);
    expect(suspects.size).toBe(0);
    expect(suspects.nextAcquittal()).toBeNull();
  });

  it("counts only consecutive crashes of a trigger that is alone", () => {
    const suspects = new CrashSuspects();
    let at = 0;
    const crash = () => suspects.crashed({ ...ALONE, group: suspects.groupOf(7), at: ++at });
    for (let n = 1; n < CRASHES_ALONE; n++) expect(crash()).toBeNull();
    at = suspects.nextAcquittal() ?? 0;
    suspects.acquit(at);
    for (let n = 1; n < CRASHES_ALONE; n++) expect(crash()).toBeNull();
    expect(crash()).toBe(7);
    expect(suspects.groupOf(7)).toBe(MAIN);
  });

  it("suspects no trigger of a crash in which none ran", () => {
    const suspects = new CrashSuspects();
    suspects.crashed({ ...ALONE, suspects: [], group: MAIN, at: 0 });
    expect(suspects.size).toBe(0);
  });
});

const ALONE = { suspects: [{ id: 7, kind: "" }], lifetimeMs: 100, seen: null };

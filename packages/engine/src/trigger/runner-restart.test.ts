import { describe, expect, it } from "vitest";
import { RunnerRestart } from "./runner-restart.ts";

/** Plays deaths by triggers that crash as soon as they are started; answers who was failed, and after how many deaths. */
function play(ids: readonly number[], crashers: ReadonlySet<number>) {
  const restart = new RunnerRestart();
  const failed: number[] = [];
  let deaths = 0;
  for (let now = 0; deaths < 100; now += 20_000) {
    const running = ids.filter((id) => !failed.includes(id));
    const waves = restart.waves(running);
    expect(waves.flat().toSorted((a, b) => a - b)).toEqual(running);
    const fatal = waves.findIndex((wave) => wave.some((id) => crashers.has(id)));
    if (fatal < 0) break;
    const casualties = { proven: new Set(waves.slice(0, fatal).flat()), unproven: new Set(waves[fatal]) };
    const { guilty } = restart.died(now, casualties, null);
    deaths++;
    if (guilty !== null) failed.push(guilty);
  }
  return { failed, deaths };
}

const ALL_PROVEN = { proven: new Set([0, 1, 2, 3, 5]), unproven: new Set<number>() };

const UNPROVEN = { proven: new Set<number>(), unproven: new Set([1]) };
const MANY = Array.from({ length: 10_000 }, (_, id) => id);

describe("deaths that nobody was seen to cause", () => {
  it("find one crasher among ten thousand, and nobody else", () => {
    for (const culprit of [0, 4_321, 9_999]) {
      const { failed, deaths } = play(MANY, new Set([culprit]));
      expect(failed).toEqual([culprit]);
      expect(deaths).toBeLessThanOrEqual(8);
    }
  });

  it("find several, one after the other", () => {
    const culprits = [17, 18, 5_000];
    const { failed } = play(MANY, new Set(culprits));
    expect(failed.toSorted((a, b) => a - b)).toEqual(culprits);
  });

  it("take three to blame even one that is alone", () => {
    expect(play([7], new Set([7]))).toEqual({ failed: [7], deaths: 3 });
  });

  it("blame nobody when all had run for a while, or when they lie far apart", () => {
    const restart = new RunnerRestart();
    for (let at = 0; at < 10; at++) expect(restart.died(at, ALL_PROVEN, null).guilty).toBeNull();
    const other = new RunnerRestart();
    for (let at = 0; at < 10; at++) expect(other.died(at * 61_000, UNPROVEN, null).guilty).toBeNull();
  });

  it("are followed by longer and longer pauses, until there was peace", () => {
    const restart = new RunnerRestart();
    const delays = Array.from({ length: 8 }, (_, n) => restart.died(n, ALL_PROVEN, null).delayMs);
    expect(delays).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    expect(restart.died(100_000, ALL_PROVEN, null).delayMs).toBe(100);
  });
});

describe("deaths during a stall", () => {
  it("are blamed on the trigger that was seen twice, however long it takes", () => {
    const restart = new RunnerRestart();
    expect(restart.died(0, ALL_PROVEN, 5).guilty).toBeNull();
    expect(restart.died(500_000, ALL_PROVEN, null).guilty).toBeNull();
    expect(restart.died(1_000_000, ALL_PROVEN, 5).guilty).toBe(5);
  });

  it("are not blamed on whoever happens to be at work when somebody else has filled the heap", () => {
    const restart = new RunnerRestart();
    for (let n = 0; n < 20; n++) expect(restart.died(n * 100_000, ALL_PROVEN, n % 4).guilty).toBeNull();
  });
});

import { expect, test, vi } from "vitest";
import { type History, liveThrough } from "./lockstep.ts";
import { possibleEnds } from "./possible-ends.ts";
import { type RandomDag, randomDag } from "./random-dag.ts";

// Seconds of pure computation: on a busy machine they may take minutes.
vi.setConfig({ testTimeout: 300_000 });

/** Histories that never happened prove nothing: the kinds that must have occurred are counted. */
function summary(histories: readonly History[]) {
  const sum = (of: (history: History) => number) =>
    histories.reduce((total, history) => total + of(history), 0);
  return {
    events: sum((history) => history.events),
    crashes: sum((history) => history.crashes),
    losses: sum((history) => history.losses),
    groupRetries: sum((history) => history.groupRetries),
    ends: new Set(histories.map((history) => history.end)),
    states: new Set(histories.flatMap((history) => [...history.states.values()])),
  };
}

function liveThroughAll(from: number, to: number, make: (seed: number) => RandomDag): History[] {
  const histories: History[] = [];
  for (let seed = from; seed < to; seed++) {
    try {
      histories.push(liveThrough(make(seed)));
    } catch (error) {
      throw new Error(`random DAG of seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  }
  return histories;
}

test("the run model agrees with the reference interpreter on 14,000 random DAGs, event by event", () => {
  const { events, crashes, losses, ends, states } = summary(
    liveThroughAll(0, 14_000, (seed) => randomDag(seed)),
  );
  expect(events).toBeGreaterThan(266_000);
  expect(crashes).toBeGreaterThan(8_400);
  expect(losses).toBeGreaterThan(8_400);
  expect(ends).toEqual(new Set(["success", "task_failure"]));
  expect(states).toEqual(new Set(["success", "failed", "skipped", "upstream_failed"]));
});

test("also with maps, gates on the past, setups and teardowns: 3,000 more", () => {
  const histories = liveThroughAll(100_000, 103_000, (seed) =>
    randomDag(seed, { mapped: 0.3, gated: 0.2, setups: 0.3, maxTasks: 9 }),
  );
  expect(withKey(histories, /\[2\]$/)).toBeGreaterThan(240);
});

test("also with maps in maps, where little fails: 2,000 more", () => {
  const histories = liveThroughAll(110_000, 112_000, (seed) =>
    randomDag(seed, { mapped: 0.5, gated: 0.1, failures: 0.1, branches: 0.1, maxTasks: 10 }),
  );
  expect(withKey(histories, /\[\d,\d\]$/)).toBeGreaterThan(200);
  expect(withKey(histories, /\[\d,\d,\d\]$/)).toBeGreaterThan(20);
});

test("also with groups that are tried again, within one another: 500 more", () => {
  const histories = liveThroughAll(120_000, 120_500, (seed) => randomDag(seed, { groups: 3, failures: 0.4 }));
  expect(summary(histories).groupRetries).toBeGreaterThan(250);
});

test("also groups with maps, gates, setups and teardowns in them: 500 more", () => {
  const histories = liveThroughAll(130_000, 130_500, (seed) =>
    randomDag(seed, { groups: 3, failures: 0.4, mapped: 0.2, gated: 0.1, setups: 0.2, maxTasks: 9 }),
  );
  expect(summary(histories).groupRetries).toBeGreaterThan(150);
});

/** How many of them had an instance with such a name. */
function withKey(histories: readonly History[], pattern: RegExp): number {
  return histories.filter(({ states }) => [...states.keys()].some((key) => pattern.test(key))).length;
}

test("a task ends in one of the ways that the analysis of all orders allows", () => {
  let certain = 0;
  let all = 0;
  for (let seed = 200_000; seed < 202_000; seed++) {
    const dag = randomDag(seed);
    const possible = possibleEnds(dag);
    for (const [key, state] of liveThrough(dag, { lossBudget: Number.POSITIVE_INFINITY }).states) {
      const ways: ReadonlySet<string> = possible.get(key.replace("[]", ""))!;
      expect(ways, `${key} of seed ${seed}`).toContain(state);
      all++;
      if (ways.size === 1) certain++;
    }
  }
  expect(certain / all).toBeGreaterThan(0.6);
});

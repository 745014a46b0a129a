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
    itemRetries: sum((history) => history.itemRetries),
    edits: sum((history) => history.edits),
    folds: sum((history) => history.folds),
    takenBack: sum((history) => history.takenBack),
    ends: new Set(histories.map((history) => history.end)),
    states: new Set(histories.flatMap((history) => [...history.states.values()])),
  };
}

function liveThroughAll(
  from: number,
  to: number,
  make: (seed: number) => RandomDag,
  { edits = 0 } = {},
): History[] {
  const histories: History[] = [];
  for (let seed = from; seed < to; seed++) {
    try {
      histories.push(liveThrough(make(seed), { edits }));
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

test("also mapped groups that are tried again item by item, with maps and groups in them: 1,500 more", () => {
  const histories = liveThroughAll(160_000, 161_500, (seed) =>
    randomDag(seed, { groups: 4, failures: 0.3, branches: 0.1, mapped: 0.5, setups: 0.1, maxTasks: 9 }),
  );
  const { folds, itemRetries } = summary(histories);
  expect(itemRetries).toBeGreaterThan(500);
  expect(folds).toBeGreaterThan(20);
});

test("edits keep the rule of success with setups and groups, and the model agrees: 1,000 more", () => {
  const { edits, ends, takenBack } = summary(
    liveThroughAll(140_000, 141_000, (seed) => randomDag(seed, { setups: 0.2, groups: 1, gated: 0.1 }), {
      edits: 3,
    }),
  );
  expect(edits).toBe(3_000);
  expect(takenBack).toBeGreaterThan(2_000);
  expect(ends).toEqual(new Set(["success", "task_failure"]));
});

test("edits keep the rule of success with groups in groups that are tried again: 300 more", () => {
  const histories = liveThroughAll(
    145_000,
    145_300,
    (seed) => randomDag(seed, { groups: 3, failures: 0.4, setups: 0.3 }),
    { edits: 3 },
  );
  expect(summary(histories).groupRetries).toBeGreaterThan(300);
});

test("edits keep the rule of success with maps whose lists are made again: 1,000 more", () => {
  const histories = liveThroughAll(
    150_000,
    151_000,
    (seed) => randomDag(seed, { mapped: 0.4, failures: 0.15, setups: 0.2, groups: 1, maxTasks: 9 }),
    { edits: 3 },
  );
  expect(withKey(histories, /\[2\]$/)).toBeGreaterThan(50);
  expect(summary(histories).folds).toBeGreaterThan(15);
});

test("edits keep the rule of success with mapped groups that are tried again item by item: 1,000 more", () => {
  const histories = liveThroughAll(
    170_000,
    171_000,
    (seed) => randomDag(seed, { groups: 3, mapped: 0.5, setups: 0.1, branches: 0.1, maxTasks: 8 }),
    { edits: 3 },
  );
  expect(summary(histories).itemRetries).toBeGreaterThan(150);
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

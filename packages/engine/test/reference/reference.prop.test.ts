import { expect, test, vi } from "vitest";
import { type History, liveThrough } from "./lockstep.ts";
import { possibleEnds } from "./possible-ends.ts";
import { type RandomDag, randomDag } from "./random-dag.ts";

// Pure computation: takes seconds, or minutes on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

/** Counts the events, so that the tests can check that the histories contain each kind. */
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

test("the run model agrees with the reference interpreter after every event: 14,000 random DAGs", () => {
  const { events, crashes, losses, ends, states } = summary(
    liveThroughAll(0, 14_000, (seed) => randomDag(seed)),
  );
  expect(events).toBeGreaterThan(266_000);
  expect(crashes).toBeGreaterThan(8_400);
  expect(losses).toBeGreaterThan(8_400);
  expect(ends).toEqual(new Set(["success", "task_failure"]));
  expect(states).toEqual(new Set(["success", "failed", "skipped", "upstream_failed"]));
});

test("the run model agrees with maps, gates on the past, setups and teardowns: 3,000 DAGs", () => {
  const histories = liveThroughAll(100_000, 103_000, (seed) =>
    randomDag(seed, { mapped: 0.3, gated: 0.2, setups: 0.3, maxTasks: 9 }),
  );
  expect(withKey(histories, /\[2\]$/)).toBeGreaterThan(240);
});

test("the run model agrees with maps in maps and few failures: 2,000 DAGs", () => {
  const histories = liveThroughAll(110_000, 112_000, (seed) =>
    randomDag(seed, { mapped: 0.5, gated: 0.1, failures: 0.1, branches: 0.1, maxTasks: 10 }),
  );
  expect(withKey(histories, /\[\d,\d\]$/)).toBeGreaterThan(200);
  expect(withKey(histories, /\[\d,\d,\d\]$/)).toBeGreaterThan(20);
});

test("the run model agrees with retries of nested groups: 500 DAGs", () => {
  const histories = liveThroughAll(120_000, 120_500, (seed) => randomDag(seed, { groups: 3, failures: 0.4 }));
  expect(summary(histories).groupRetries).toBeGreaterThan(250);
});

test("the run model agrees with groups that contain maps, gates, setups and teardowns: 500 DAGs", () => {
  const histories = liveThroughAll(130_000, 130_500, (seed) =>
    randomDag(seed, { groups: 3, failures: 0.4, mapped: 0.2, gated: 0.1, setups: 0.2, maxTasks: 9 }),
  );
  expect(summary(histories).groupRetries).toBeGreaterThan(150);
});

test("the run model agrees with mapped groups that are retried per item and contain maps and groups: 1,500 DAGs", () => {
  const histories = liveThroughAll(160_000, 161_500, (seed) =>
    randomDag(seed, { groups: 4, failures: 0.3, branches: 0.1, mapped: 0.5, setups: 0.1, maxTasks: 9 }),
  );
  const { folds, itemRetries } = summary(histories);
  expect(itemRetries).toBeGreaterThan(500);
  expect(folds).toBeGreaterThan(20);
});

test("edits keep the success rule with setups and groups: 1,000 DAGs", () => {
  const { edits, ends, takenBack } = summary(
    liveThroughAll(140_000, 141_000, (seed) => randomDag(seed, { setups: 0.2, groups: 1, gated: 0.1 }), {
      edits: 3,
    }),
  );
  expect(edits).toBe(3_000);
  expect(takenBack).toBeGreaterThan(2_000);
  expect(ends).toEqual(new Set(["success", "task_failure"]));
});

test("edits keep the success rule with retries of nested groups: 300 DAGs", () => {
  const histories = liveThroughAll(
    145_000,
    145_300,
    (seed) => randomDag(seed, { groups: 3, failures: 0.4, setups: 0.3 }),
    { edits: 3 },
  );
  expect(summary(histories).groupRetries).toBeGreaterThan(300);
});

test("edits keep the success rule with maps whose lists are computed again: 1,000 DAGs", () => {
  const histories = liveThroughAll(
    150_000,
    151_000,
    (seed) => randomDag(seed, { mapped: 0.4, failures: 0.15, setups: 0.2, groups: 1, maxTasks: 9 }),
    { edits: 3 },
  );
  expect(withKey(histories, /\[2\]$/)).toBeGreaterThan(50);
  expect(summary(histories).folds).toBeGreaterThan(15);
});

test("edits keep the success rule with mapped groups that are retried per item: 1,000 DAGs", () => {
  const histories = liveThroughAll(
    170_000,
    171_000,
    (seed) => randomDag(seed, { groups: 3, mapped: 0.5, setups: 0.1, branches: 0.1, maxTasks: 8 }),
    { edits: 3 },
  );
  expect(summary(histories).itemRetries).toBeGreaterThan(150);
});

/** Number of histories with an instance whose key matches. */
function withKey(histories: readonly History[], pattern: RegExp): number {
  return histories.filter(({ states }) => [...states.keys()].some((key) => pattern.test(key))).length;
}

test("a task ends in one of the states that possibleEnds computes for all orders", () => {
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

import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { NO_TASKS } from "../../../test/support/no-tasks.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { leavesMore, startQueuedRuns, takeOverRuns, type WaitingTasks } from "./run-claim.ts";

let db: Database;
let jobId: number;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  jobId = await seedJob(db);
  return () => test.close();
});

it("starts the longest waiting runs of all DAGs below their limit, and no more", async () => {
  await seedDag(db, "full", { maxActiveRuns: 2 });
  await seedDag(db, "narrow", { maxActiveRuns: 2 });
  await seedDag(db, "wide");
  await seedDag(db, "paused");
  await db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'paused'"));
  await seedRuns(db, "full", { count: 2, state: "running", ownerJob: jobId });
  await seedRuns(db, "full", { count: 3, ageMs: 90_000 });
  await seedRuns(db, "paused", { count: 3, ageMs: 90_000 });
  const [first, second] = await seedRuns(db, "narrow", { count: 50, ageMs: 80_000 });
  const wide = await seedRuns(db, "wide", { count: 10, ageMs: 70_000 });
  await seedRuns(db, "wide", { count: 1, ageMs: -60_000 });

  expect(await claim(5)).toEqual([first, second, ...wide.slice(0, 3)]);
  expect(await claim(100)).toEqual(wide.slice(3));
  expect(await claim(100)).toEqual([]);
  await db.rows(adhoc("UPDATE dag_run SET state = 'success' WHERE dag_id = 'full' AND state = 'running'"));
  expect(await claim(100)).toHaveLength(2);
});

it("stops after the run that reaches the task limit, and takes a run of any size", async () => {
  await seedDag(db, "huge", { taskCount: 25_000 });
  await seedDag(db, "big", { taskCount: 8_000 });
  const huge = await seedRuns(db, "huge", { count: 2, ageMs: 90_000 });
  const big = await seedRuns(db, "big", { count: 5 });
  const start = () => startQueuedRuns(db, { jobId, limit: 64, columns: async () => NO_TASKS });

  const taken = [await start(), await start(), await start(), await start()];
  expect(taken.map((runs) => runs.map((run) => run.id))).toEqual([
    huge.slice(0, 1),
    huge.slice(1),
    big.slice(0, 3),
    big.slice(3),
  ]);
  expect(taken.map((runs) => leavesMore(runs, 64))).toEqual([true, true, true, false]);

  await db.rows(adhoc("UPDATE job SET state = 'dead'"));
  const heir = await seedJob(db);
  const inherited = [];
  for (let i = 0; i < 5; i++) inherited.push(await takeOverRuns(db, heir, 64));
  expect(inherited.map((runs) => runs.map((run) => run.id))).toEqual([
    huge.slice(0, 1),
    huge.slice(1),
    big.slice(0, 3),
    big.slice(3),
    [],
  ]);
  expect(leavesMore(inherited[2] ?? [], 64)).toBe(true);
  expect(leavesMore(inherited[3] ?? [], 2)).toBe(true);
});

it("starts its share of the waiting tasks while no scheduler has free slots, and at least one run", async () => {
  await seedDag(db, "dag", { maxActiveRuns: 100 });
  await seedRuns(db, "dag", { count: 16 });
  const started: number[] = [];
  const hasMore: boolean[] = [];
  const start = async (waiting: WaitingTasks) => {
    const runs = await startQueuedRuns(db, { jobId, limit: 64, waiting, columns: async () => NO_TASKS });
    started.push(runs.length);
    hasMore.push(leavesMore(runs, 64));
  };
  await start({ own: 0, all: 0, schedulers: 3 });
  await start({ own: 6, all: 6, schedulers: 3 });
  await start({ own: 0, all: 7, schedulers: 3 });
  await start({ own: 0, all: 13, schedulers: 3 });
  expect(started).toEqual([6, 1, 6, 3]);
  expect(hasMore).toEqual([true, true, true, false]);
});

it("gives each run to one of several concurrent schedulers, within the DAG's limit", async () => {
  for (let i = 0; i < 12; i++) {
    await seedDag(db, `d${i}`, { maxActiveRuns: 3 });
    await seedRuns(db, `d${i}`, { count: 10 });
  }
  const claims = Array.from({ length: 6 }, async () => {
    const mine: number[] = [];
    for (let empty = 0; empty < 3; ) {
      const ids = await claim(4);
      mine.push(...ids);
      if (ids.length === 0) empty++;
    }
    return mine;
  });
  const all = (await Promise.all(claims)).flat();
  expect(new Set(all).size).toBe(all.length);
  const running = await db.rows<{ n: number }>(
    adhoc("SELECT count(*)::int AS n FROM dag_run WHERE state = 'running' GROUP BY dag_id"),
  );
  expect(running.map((row) => row.n)).toEqual(Array(12).fill(3));
});

async function claim(limit: number): Promise<number[]> {
  const runs = await startQueuedRuns(db, { jobId, limit, columns: async () => NO_TASKS });
  return runs.map((run) => run.id);
}

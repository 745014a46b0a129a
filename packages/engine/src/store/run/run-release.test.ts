import { beforeEach, expect, it } from "vitest";
import { seedDag, seedRuns, twoSchedulers } from "../../../test/support/catalogue-seed.ts";
import { adhoc, type Database } from "../database/database.ts";
import { takeOverRuns } from "./run-claim.ts";
import { handOverRuns, publishFreeSlots } from "./run-hand-over.ts";
import { type DrainFacts, releaseRuns } from "./run-release.ts";

const facts: DrainFacts = { draining: true, drain_until: "2026-01-01T00:00:00Z", runs: 1, attempts: 2 };
let db: Database;
let own: number;
let peer: number;

beforeEach(async () => {
  const test = await twoSchedulers();
  ({ db, own, peer } = test);
  await seedDag(db, "dag");
  return () => test.close();
});

const seed = (count: number, ownerJob = own) => seedRuns(db, "dag", { count, state: "running", ownerJob });
const rows = () =>
  db.rows<{ id: number; owner_job: number | null; generation: number }>(
    adhoc("SELECT id, owner_job, generation FROM dag_run ORDER BY id"),
  );

it("releases the runs of the job except those that it keeps, and another job can take them over", async () => {
  const [kept, second, third] = await seed(3);
  await seed(1, peer);
  const before = await rows();
  expect(await releaseRuns(db, own, { kept: [kept!], facts })).toEqual([second, third]);
  const after = await rows();
  expect(after.map(({ owner_job }) => owner_job)).toEqual([own, null, null, peer]);
  expect(after.map(({ generation }, at) => generation - before[at]!.generation)).toEqual([0, 1, 1, 0]);
  const taken = await takeOverRuns(db, peer, 10);
  expect(taken.map(({ id }) => id)).toEqual([second, third]);
  expect(await releaseRuns(db, own, { kept: [kept!], facts })).toEqual([]);
});

it("skips a run that is being edited, and releases it afterwards", async () => {
  const [edited, other] = await seed(2);
  await db.transaction(async (tx) => {
    await tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR UPDATE"), [edited]);
    expect(await releaseRuns(db, own, { kept: [], facts })).toEqual([other]);
  });
  expect(await releaseRuns(db, own, { kept: [], facts })).toEqual([edited]);
});

it("withdraws its free slots and marks the job as draining", async () => {
  await publishFreeSlots(db, own, { slots: 8, free: 5 });
  const [run] = await seed(1, peer);
  await releaseRuns(db, own, { kept: [], facts });
  const job = await db.one(adhoc("SELECT state, slots, free_slots, facts FROM job WHERE id = $1"), [own]);
  expect(job).toEqual({ state: "running", slots: 8, free_slots: 0, facts });
  const runs = (await rows()).filter(({ id }) => id === run);
  expect(await handOverRuns(db, { from: peer, to: own, runs, slots: 1 })).toEqual(new Set());
});

import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns, twoSchedulers } from "../../../test/support/catalogue-seed.ts";
import { adhoc, type Database } from "../database/database.ts";
import { handOverRuns, livePeers, offeredSlots, publishFreeSlots } from "./run-hand-over.ts";

let db: Database;
let own: number;
let peer: number;

beforeEach(async () => {
  const test = await twoSchedulers();
  ({ db, own, peer } = test);
  await seedDag(db, "dag");
  return () => test.close();
});

const runs = async (count: number) => {
  const ids = await seedRuns(db, "dag", { count, state: "running", ownerJob: own });
  return db.rows<{ id: number; generation: number }>(
    adhoc("SELECT id, generation FROM dag_run WHERE id = ANY($1) ORDER BY id"),
    [ids],
  );
};
const owners = async () =>
  (await db.rows<{ owner_job: number }>(adhoc("SELECT owner_job FROM dag_run ORDER BY id"))).map(
    (row) => row.owner_job,
  );
const freeOf = async (id: number) =>
  (await db.one<{ free_slots: number }>(adhoc("SELECT free_slots FROM job WHERE id = $1"), [id]))?.free_slots;

it("makes the peer the owner, raises the generation and reserves the peer's slots", async () => {
  await publishFreeSlots(db, peer, { slots: 8, free: 5 });
  const [first, second, third] = await runs(3);
  const moved = await handOverRuns(db, { from: own, to: peer, runs: [first!, third!], slots: 4 });
  expect([...moved].sort()).toEqual([first!.id, third!.id]);
  expect(await owners()).toEqual([peer, own, peer]);
  const after = await db.rows<{ generation: number }>(adhoc("SELECT generation FROM dag_run ORDER BY id"));
  expect(after.map(({ generation }) => generation)).toEqual([
    first!.generation + 1,
    second!.generation,
    third!.generation + 1,
  ]);
  expect(await freeOf(peer)).toBe(1);
});

it("skips runs that were edited, have ended or belong to another job", async () => {
  await publishFreeSlots(db, peer, { slots: 8, free: 5 });
  const given = await runs(3);
  await db.rows(adhoc("UPDATE dag_run SET generation = generation + 1 WHERE id = $1"), [given[0]!.id]);
  await db.rows(adhoc("UPDATE dag_run SET state = 'success', owner_job = NULL WHERE id = $1"), [
    given[1]!.id,
  ]);
  const other = await seedJob(db);
  await db.rows(adhoc("UPDATE dag_run SET owner_job = $2 WHERE id = $1"), [given[2]!.id, other]);
  expect(await handOverRuns(db, { from: own, to: peer, runs: given, slots: 3 })).toEqual(new Set());
  expect(await owners()).toEqual([own, null, other]);
});

it("hands nothing to a peer without free slots, an ended peer or one whose lease has expired", async () => {
  const given = await runs(1);
  const give = () => handOverRuns(db, { from: own, to: peer, runs: given, slots: 1 });
  expect(await give()).toEqual(new Set());
  await publishFreeSlots(db, peer, { slots: 8, free: 8 });
  await db.rows(adhoc("UPDATE job SET lease_until = now() - interval '1 second' WHERE id = $1"), [peer]);
  expect(await give()).toEqual(new Set());
  expect(await livePeers(db, own)).toEqual([]);
  await db.rows(
    adhoc("UPDATE job SET lease_until = now() + interval '1 hour', state = 'stopped' WHERE id = $1"),
    [peer],
  );
  expect(await give()).toEqual(new Set());
  expect(await livePeers(db, own)).toEqual([]);
  expect(await owners()).toEqual([own]);
});

it("does not reserve the same free slot for two owners", async () => {
  await publishFreeSlots(db, peer, { slots: 1, free: 1 });
  const given = await runs(2);
  const both = await Promise.all(
    given.map((run) => handOverRuns(db, { from: own, to: peer, runs: [run], slots: 1 })),
  );
  expect(both.map(({ size }) => size).sort()).toEqual([0, 1]);
});

it("does not overwrite a reservation that the job has not seen", async () => {
  const publish = (known: number) => publishFreeSlots(db, peer, { slots: 8, free: 5 }, known);
  expect(await publish(0)).toBe(true);
  const given = await runs(1);
  await handOverRuns(db, { from: own, to: peer, runs: given, slots: 4 });
  expect(await publish(5)).toBe(false);
  const offered = await offeredSlots(db, peer);
  expect(offered).toBe(1);
  expect(await publish(offered)).toBe(true);
  expect(await freeOf(peer)).toBe(5);
});

it("lists peers by their free slots, without the job itself", async () => {
  const third = await seedJob(db);
  await publishFreeSlots(db, own, { slots: 8, free: 8 });
  await publishFreeSlots(db, peer, { slots: 8, free: 2 });
  await publishFreeSlots(db, third, { slots: null, free: 7 });
  expect(await livePeers(db, own)).toEqual([
    { id: third, free_slots: 7, dags: null },
    { id: peer, free_slots: 2, dags: null },
  ]);
});

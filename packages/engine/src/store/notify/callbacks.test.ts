import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { adoptCallbacks } from "./callbacks.ts";

let db: Database;
let self: number;
let run: number;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  self = await seedJob(db);
  await seedDag(db, "a");
  run = (await seedRuns(db, "a"))[0] ?? 0;
  return () => test.close();
});

it("adopts callbacks of ended jobs, not of a job with an expired lease", async () => {
  const lapsed = await seedJob(db, 0);
  const [dead, stopped] = [await seedJob(db), await seedJob(db)];
  await db.rows(adhoc("UPDATE job SET state = 'dead' WHERE id = $1"), [dead]);
  await db.rows(adhoc("UPDATE job SET state = 'stopped' WHERE id = $1"), [stopped]);
  const [ofDead, ofNobody] = [await callback(dead), await callback(null)];
  const left = [ofDead, await callback(stopped), ofNobody];
  const kept = await callback(lapsed);
  expect((await adoptCallbacks(db, self, [])).sort()).toEqual(left.sort());
  expect(await row(ofDead)).toMatchObject({ owner_job: self, tries: 1 });
  expect(await row(ofNobody)).toMatchObject({ owner_job: self, tries: 0 });
  expect(await row(kept)).toMatchObject({ owner_job: lapsed, tries: 0 });
});

it("adopts own callbacks that are not active, except recent ones", async () => {
  const lost = await callback(self, { ageMs: 6_000 });
  const running = await callback(self, { ageMs: 6_000 });
  await callback(self, { ageMs: 0 });
  expect(await adoptCallbacks(db, self, [running])).toEqual([lost]);
  // No job died while running it.
  expect(await row(lost)).toMatchObject({ owner_job: self, tries: 0 });
});

it("skips active callbacks that belonged to a previous job of this process", async () => {
  const former = await seedJob(db);
  const running = await callback(former);
  await db.rows(adhoc("UPDATE job SET state = 'dead' WHERE id = $1"), [former]);
  expect(await adoptCallbacks(db, self, [running])).toEqual([]);
});

it("finds runnable callbacks behind many failed ones", async () => {
  for (let i = 0; i < 120; i++) await callback(null, { tries: 5, ageMs: 60_000 });
  const ready = await callback(null, { tries: 4 });
  expect(await adoptCallbacks(db, self, [])).toEqual([ready]);
  expect(await adoptCallbacks(db, self, [])).toEqual([]);
});

async function callback(
  owner: number | null,
  facts: { tries?: number; ageMs?: number } = {},
): Promise<string> {
  const id = crypto.randomUUID();
  await db.rows(
    adhoc(`INSERT INTO callback (id, dag_run_id, event, owner_job, tries, created_at)
           VALUES ($1, $2, 'failure', $3, $4, now() - $5 * interval '1 millisecond')`),
    [id, run, owner, facts.tries ?? 0, facts.ageMs ?? 0],
  );
  return id;
}

function row(id: string | undefined): Promise<unknown> {
  return db.one(adhoc("SELECT owner_job, tries FROM callback WHERE id = $1"), [id]);
}

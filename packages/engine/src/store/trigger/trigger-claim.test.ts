import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { seedTrigger, seedTriggerer, triggerRow } from "../../../test/support/trigger-seed.ts";
import { adhoc, type Database } from "../database/database.ts";
import { endJob } from "../job/job-lease.ts";
import {
  claimTriggers,
  deadOwners,
  ownedTriggers,
  postponeTriggers,
  releaseAllTriggers,
  releaseTriggers,
} from "./trigger-claim.ts";
import { countFree, nextColdIn, recordPolls } from "./triggers.ts";

let db: Database;
let a: number;
let b: number;

beforeAll(async () => {
  ({ db } = await testDatabase());
});

beforeEach(async () => {
  await db.rows(adhoc("DELETE FROM trigger"));
  a = await seedTriggerer(db);
  b = await seedTriggerer(db);
});

async function claim(jobId: number, options: { limit?: number; queues?: string[]; horizonMs?: number } = {}) {
  const { limit = 100, queues = ["default"], horizonMs = 0 } = options;
  const dead = await deadOwners(db, jobId);
  const claimed = await claimTriggers(db, { jobId, queues, limit, horizonMs, dead });
  return claimed.map(({ id }) => id).sort((x, y) => x - y);
}

describe("claiming", () => {
  it("claims due triggers of its queues, the longest waiting first, and no timed ones", async () => {
    const old = await seedTrigger(db, { wakeMs: -2_000 });
    const older = await seedTrigger(db, { wakeMs: -3_000 });
    const slow = await seedTrigger(db, { queue: "slow", wakeMs: -1_000 });
    await seedTrigger(db, { queue: "other" });
    const cold = await seedTrigger(db, { wakeMs: 30_000 });
    await seedTrigger(db, { timed: { payload: 1 }, wakeMs: -1_000 });
    expect(await countFree(db, { queues: ["default", "slow"], horizonMs: 0, limit: 10 })).toBe(3);
    expect(await claim(a, { limit: 1 })).toEqual([older]);
    expect(await claim(a, { queues: ["default", "slow"] })).toEqual([old, slow]);
    expect(await claim(b)).toEqual([]);
    expect(await nextColdIn(db, ["default"], 0)).toBeGreaterThan(20_000);
    expect(await claim(b, { horizonMs: 40_000 })).toEqual([cold]);
    expect(await nextColdIn(db, ["default"], 0)).toBeNull();
  });

  it("gives each trigger to one job when called concurrently", async () => {
    for (let i = 0; i < 200; i++) await seedTrigger(db);
    const both = await Promise.all(
      [a, b].map(async (job) => {
        const mine: number[] = [];
        for (let got = await claim(job, { limit: 9 }); got.length > 0; got = await claim(job, { limit: 9 }))
          mine.push(...got);
        return mine;
      }),
    );
    const all = both.flat();
    expect(new Set(all).size).toBe(all.length);
    expect(await claim(a)).toEqual([]);
    const free = await db.rows(adhoc("SELECT 1 FROM trigger WHERE owner_job IS NULL"));
    expect(free).toEqual([]);
  });

  it("takes over from a job that stopped, was declared dead, or whose lease expired", async () => {
    const lapsed = await seedTriggerer(db, 0);
    const stopped = await seedTriggerer(db);
    const dead = await seedTriggerer(db);
    await endJob(db, stopped);
    await db.rows(adhoc("UPDATE job SET state = 'dead' WHERE id = $1"), [dead]);
    const seeds = [lapsed, stopped, dead].map((ownerJob) => seedTrigger(db, { ownerJob }));
    const ids = (await Promise.all(seeds)).sort((x, y) => x - y);
    const alive = await seedTrigger(db, { ownerJob: b });
    expect((await deadOwners(db, a)).sort()).toEqual([lapsed, stopped, dead].sort());
    expect(await claim(a)).toEqual(ids);
    expect((await triggerRow(db, alive))?.owner_job).toBe(b);
    expect(await deadOwners(db, a)).toEqual([]);
  });

  it("takes nothing over without a list of dead jobs", async () => {
    const id = await seedTrigger(db, { ownerJob: await seedTriggerer(db, 0) });
    const request = { jobId: a, queues: ["default"], limit: 10, horizonMs: 0, dead: [] };
    expect(await claimTriggers(db, request)).toEqual([]);
    expect(await claim(a)).toEqual([id]);
  });

  it("skips the schedule of a paused or stale DAG", async () => {
    await seedDag(db, "awake");
    await seedDag(db, "paused");
    await seedDag(db, "stale");
    await db.rows(adhoc("UPDATE dag SET is_paused = dag_id = 'paused', is_stale = dag_id = 'stale'"));
    const [awake = 0] = await Promise.all(
      ["awake", "paused", "stale"].map((dagId) => seedTrigger(db, { dagId })),
    );
    expect(await claim(a)).toEqual([awake]);
    await db.rows(adhoc("UPDATE dag SET is_paused = true"));
    expect(await ownedTriggers(db, a)).toMatchObject([{ id: awake, is_awake: false }]);
  });
});

describe("a trigger with two replicas", () => {
  it("is run by two jobs, never twice by one", async () => {
    const id = await seedTrigger(db, { replicas: 2 });
    expect(await claim(a)).toEqual([id]);
    expect(await claim(a)).toEqual([]);
    expect(await claim(b)).toEqual([id]);
    expect(await triggerRow(db, id)).toMatchObject({ owner_job: a, standby_job: b });
    expect(await claim(await seedTriggerer(db))).toEqual([]);
  });

  it("promotes its standby when the owner ends, and gets another standby", async () => {
    const id = await seedTrigger(db, { replicas: 2, ownerJob: a, standbyJob: b });
    await endJob(db, a);
    expect(await claim(b)).toEqual([]);
    expect(await triggerRow(db, id)).toMatchObject({ owner_job: b, standby_job: null });
    const c = await seedTriggerer(db);
    expect(await claim(c)).toEqual([id]);
    expect(await triggerRow(db, id)).toMatchObject({ owner_job: b, standby_job: c });
    await endJob(db, c);
    const d = await seedTriggerer(db);
    expect(await claim(d)).toEqual([id]);
    expect(await triggerRow(db, id)).toMatchObject({ owner_job: b, standby_job: d });
  });
});

describe("letting go", () => {
  it("releases the triggers of this job only", async () => {
    const mine = await seedTrigger(db, { ownerJob: a });
    const second = await seedTrigger(db, { ownerJob: b, standbyJob: a, replicas: 2 });
    const theirs = await seedTrigger(db, { ownerJob: b });
    await releaseTriggers(db, a, [mine, second, theirs]);
    expect(await triggerRow(db, mine)).toMatchObject({ owner_job: null });
    expect(await triggerRow(db, second)).toMatchObject({ owner_job: b, standby_job: null });
    expect(await triggerRow(db, theirs)).toMatchObject({ owner_job: b });
    await releaseAllTriggers(db, b);
    expect(await db.rows(adhoc("SELECT 1 FROM trigger WHERE owner_job IS NOT NULL"))).toEqual([]);
  });

  it("notifies other triggerers in the same transaction", async () => {
    const heard = Promise.withResolvers<string>();
    const listening = await db.listen("tradewind", heard.resolve);
    await releaseAllTriggers(db, a);
    expect(await heard.promise).toBe("triggers");
    await listening.close();
  });

  it("delays a schedule that failed", async () => {
    await seedDag(db, "failing");
    const id = await seedTrigger(db, { dagId: "failing", ownerJob: a });
    await postponeTriggers(db, a, { ids: [id], delayMs: 60_000 });
    expect(await claim(b)).toEqual([]);
    expect(await claim(b, { horizonMs: 61_000 })).toEqual([id]);
  });
});

it("records polls of its own triggers without waiting for locks", async () => {
  const mine = await seedTrigger(db, { ownerJob: a });
  const busy = await seedTrigger(db, { ownerJob: a });
  const theirs = await seedTrigger(db, { ownerJob: b });
  await db.transaction(async (tx) => {
    await tx.rows(adhoc("SELECT 1 FROM trigger WHERE id = $1 FOR UPDATE"), [busy]);
    await recordPolls(db, a, [mine, busy, theirs]);
  });
  const polled = await Promise.all(
    [mine, busy, theirs].map(async (id) => (await triggerRow(db, id))?.polled_at),
  );
  expect(polled).toEqual([expect.any(Date), null, null]);
});

import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { taskManifest } from "../../../test/reference/manifests.ts";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { NO_TASKS } from "../../../test/support/no-tasks.ts";
import { seedBackfill } from "../../../test/support/seed-backfill.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database, isTransient } from "../database/database.ts";
import { cancelRun, markRun } from "../edit/end-run.ts";
import { startQueuedRuns, takeOverRuns } from "../run/run-claim.ts";
import {
  adoptBackfill,
  hasFreeBackfill,
  ownedBackfills,
  startBackfillRuns,
  takeOverBackfillRuns,
} from "./backfill-claim.ts";
import { planBackfill } from "./backfill-plan.ts";
import { cancelBackfill, countBackfill, endBackfills } from "./backfills.ts";

const HOURLY = { kind: "interval", everyMs: 3_600_000, style: "trigger" } as const;
const RANGE = { dagId: "d", from: "2020-01-01T00:00:00Z", to: "2020-01-01T09:00:00Z" };
let db: Database;
let job: number;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  job = await seedJob(db);
  await seedDag(db, "d", { schedule: HOURLY, maxActiveRuns: 2, tasks: [taskManifest("t0")] });
  await sql("UPDATE dag SET next_run_after = NULL");
  return () => test.close();
});

describe("a date's run", () => {
  it("is created once per date by any number of calls, within the backfill's limit", async () => {
    const id = await owned({ maxActive: 3 });
    expect(await planBackfill(db, id, job)).toMatchObject({ made: 3, isMore: false });
    expect(await planBackfill(db, id, job)).toMatchObject({ made: 0, isMore: false });
    expect(await dates()).toEqual([0, 1, 2]);
    await end();
    expect(await planBackfill(db, id, job)).toMatchObject({ made: 3, isMore: false });
    expect(await dates()).toEqual([0, 1, 2, 3, 4, 5]);
    // This job does not own the backfill.
    await sql("UPDATE dag_run SET state = 'success'");
    expect(await planBackfill(db, id, await seedJob(db))).toMatchObject({ made: 0, isMore: false });
  });

  it("is created once by two backfills with opposite directions, and counted by both", async () => {
    const ids = [await owned({ maxActive: 2 }), await owned({ maxActive: 2, isReverse: true })];
    const fill = async (id: number) => {
      for (let over: object[] = []; over.length === 0; over = await endBackfills(db, [id])) {
        await planBackfill(db, id, job);
        await sql("UPDATE dag_run SET state = 'success', ended_at = now() WHERE backfill_id = $1", [id]);
      }
    };
    await Promise.all(ids.map(fill));
    expect(await dates()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const id of ids) {
      const counted = await countBackfill(db, id);
      expect(counted?.dates.reduce((sum, date) => sum + date.runs, 0)).toBe(10);
      expect(counted?.dates.every(({ state }) => state === "success")).toBe(true);
    }
  });

  it("is kept, cleared or awaited if it exists", async () => {
    for (const [hour, state] of [
      [0, "success"],
      [1, "failed"],
      [2, "running"],
    ] as const)
      await seedDated(hour, state);
    const id = await owned({ reprocess: "failed", maxActive: 1, conf: { why: "again" } });
    expect(await planBackfill(db, id, job)).toMatchObject({ made: 1, isMore: false });
    expect(await noted(id)).toEqual(["kept", "cleared", "awaited"]);
    const [, failed, busy] = await runs();
    expect(failed).toMatchObject({
      state: "queued",
      run_type: "backfill",
      conf: { why: "again" },
      clear_number: 1,
    });
    expect(busy).toMatchObject({ state: "running", run_type: "manual", backfill_id: null });
  });

  it("is cleared although it was cancelled before it had tasks", async () => {
    const [run] = await seedDated(0, "queued");
    await db.transaction((tx) => cancelRun(tx, run as number, "not today"));
    const id = await owned({ reprocess: "completed", maxActive: 1 });
    await planBackfill(db, id, job);
    expect(await noted(id)).toEqual(["cleared"]);
    expect((await runs())[0]).toMatchObject({ state: "queued", end_reason: null });
  });

  it("gets a suffix when a run of another date uses its run id", async () => {
    await seedDated(20, "success");
    await sql("UPDATE dag_run SET run_id = 'backfill__2020-01-01T00:00:00.000Z'");
    const id = await owned({ maxActive: 1 });
    await planBackfill(db, id, job);
    expect((await runs())[0]).toMatchObject({ run_id: `backfill__2020-01-01T00:00:00.000Z_${id}` });
  });
});

describe("the dates listed by a timetable", () => {
  const at = (hour: number) => Date.UTC(2020, 0, 1, hour);
  const moment = (hour: number) => ({
    logicalDate: at(hour),
    intervalStart: at(hour),
    intervalEnd: at(hour),
    runAfter: at(hour),
  });
  const period = {
    logicalDate: at(5),
    intervalStart: at(3),
    intervalEnd: at(4),
    runAfter: at(6),
  };
  const listed = [moment(1), moment(2), period, moment(7)];

  it.each([false, true])("get their runs in order; reverse: %s", async (isReverse) => {
    const id = await owned({ maxActive: 3, isReverse, listed });
    expect(await planBackfill(db, id, job)).toMatchObject({ made: 3, isMore: false });
    expect(await dates()).toEqual(isReverse ? [2, 5, 7] : [1, 2, 5]);
    await end();
    expect(await planBackfill(db, id, job)).toMatchObject({ made: 1, isMore: false });
    expect(await dates()).toEqual([1, 2, 5, 7]);
    expect((await runs())[2]).toMatchObject({
      interval_start: new Date(at(3)),
      interval_end: new Date(at(4)),
      run_after: new Date(at(6)),
    });
    await end();
    expect(await endBackfills(db, [id])).toEqual([{ id, dag_id: "d", state: "done" }]);
  });

  it("are processed in bounded steps when most of them have runs", async () => {
    const many = Array.from({ length: 250 }, (_, hour) => moment(hour));
    const first = await owned({ maxActive: 1_000, listed: many });
    for (let isMore = true; isMore; ) ({ isMore } = await planBackfill(db, first, job));
    expect(await runs()).toHaveLength(250);
    await end();
    const second = await owned({ maxActive: 1, listed: [...many, moment(250)] });
    let steps = 0;
    for (let isMore = true; isMore; steps++) ({ isMore } = await planBackfill(db, second, job));
    expect(steps).toBeGreaterThan(3);
    expect((await runs()).filter((run) => run.state === "queued")).toHaveLength(1);
  });
});

describe("schedulers", () => {
  it("skip the runs of an open backfill, do not count them, and start cleared runs of an ended backfill", async () => {
    const id = await owned({ maxActive: 4 });
    await planBackfill(db, id, job);
    expect(await startQueued()).toEqual([]);
    expect(await startOwn()).toHaveLength(4);
    await seedRuns(db, "d", { count: 5 });
    expect(await startQueued()).toHaveLength(2);

    await sql("UPDATE job SET lease_until = now() - interval '1 second'");
    const heir = await seedJob(db);
    expect(await takeOverRuns(db, heir, 64)).toHaveLength(2);
    expect(await takeOverBackfillRuns(db, heir, 64)).toEqual([]);
    expect(await adoptBackfill(db, { jobId: heir, has: 0, mayJudge: true })).toEqual({ id, dag_id: "d" });
    expect(await takeOverBackfillRuns(db, heir, 64)).toHaveLength(4);

    await db.transaction((tx) => cancelBackfill(tx, id, false));
    await sql("UPDATE dag_run SET state = 'success' WHERE backfill_id IS NULL");
    const [first] = await runs();
    await db.transaction((tx) => markRun(tx, first?.id as number, "queued"));
    expect(await startQueued()).toContain(first?.id);
  });
});

describe("a backfill", () => {
  it("has one owner, replaced only after its lease expires; a job that owns backfills leaves new ones to others", async () => {
    const ids = [await seedBackfill(db, { ...RANGE }), await seedBackfill(db, { ...RANGE })];
    const other = await seedJob(db);
    const adopt = (jobId: number, has: number) => adoptBackfill(db, { jobId, has, mayJudge: true });
    expect(await hasFreeBackfill(db)).toBe(true);
    expect(await adopt(job, 0)).toMatchObject({ id: ids[0] });
    expect(await adopt(job, 60)).toBeUndefined();
    expect(await adopt(other, 0)).toMatchObject({ id: ids[1] });
    expect(await adopt(other, 0)).toBeUndefined();
    expect(await hasFreeBackfill(db)).toBe(false);
    await sql("UPDATE job SET lease_until = now() - interval '1 second' WHERE id = $1", [job]);
    expect(await adoptBackfill(db, { jobId: other, has: 1, mayJudge: false })).toBeUndefined();
    expect(await adopt(other, 1)).toMatchObject({ id: ids[0] });
    expect((await ownedBackfills(db, other)).sort()).toEqual([...ids].sort());
    expect(await ownedBackfills(db, job)).toEqual([]);
  });

  it("can be adopted although its owner stalled in the middle of a transaction", async () => {
    const id = await owned({ maxActive: 1 });
    await planBackfill(db, id, job);
    const asleep = Promise.withResolvers<void>();
    const stalled = startBackfillRuns(db, {
      jobId: job,
      limit: 1,
      columns: () => asleep.promise.then(() => NO_TASKS),
    }).catch((error: unknown) => error);
    await sql("UPDATE job SET lease_until = now() - interval '1 second' WHERE id = $1", [job]);
    const heir = await seedJob(db);
    while (!(await adoptBackfill(db, { jobId: heir, has: 0, mayJudge: true }))) await sleep(50);
    asleep.resolve();
    expect(isTransient(await stalled)).toBe(true);
    expect((await runs()).map((run) => run.state)).toEqual(["queued"]);
  });

  it("ends its queued runs after a failure with stopOnFailure", async () => {
    const id = await owned({ maxActive: 3, stopOnFailure: true });
    await planBackfill(db, id, job);
    const [first, ...queued] = await runs();
    await sql("UPDATE dag_run SET state = 'failed', ended_at = now() WHERE id = $1", [first?.id]);
    expect(await planBackfill(db, id, job)).toMatchObject({
      made: 0,
      isMore: false,
      cancelled: queued.map((run) => run.id),
    });
    expect((await runs()).map((run) => run.state)).toEqual(["failed", "failed", "failed"]);
    expect(await endBackfills(db, [id])).toEqual([{ id, dag_id: "d", state: "failed" }]);
  });

  it("runs a run that a user clears while it is being cancelled, then ends", async () => {
    const id = await owned({ maxActive: 2 });
    await planBackfill(db, id, job);
    const [first] = await startOwn();
    await sql("UPDATE dag_run SET state = 'success', ended_at = now() WHERE id = $1", [first]);
    await db.transaction((tx) => cancelBackfill(tx, id, true));
    await db.transaction((tx) => markRun(tx, first as number, "queued"));
    expect(await startQueued()).toEqual([]);
    expect(await startOwn()).toEqual([first]);
    await sql("UPDATE dag_run SET state = 'success', ended_at = now() WHERE state = 'running'");
    expect(await endBackfills(db, [id])).toEqual([{ id, dag_id: "d", state: "cancelled" }]);
  });

  it("is settled once by concurrent calls", async () => {
    const id = await owned({ maxActive: 20 });
    await planBackfill(db, id, job);
    expect(await endBackfills(db, [id])).toEqual([]);
    await end();
    const settled = await Promise.all([endBackfills(db, [id]), endBackfills(db, [id])]);
    expect(settled.flat()).toEqual([{ id, dag_id: "d", state: "done" }]);
  });
});

async function owned(wish: Partial<Parameters<typeof seedBackfill>[1]>): Promise<number> {
  const id = await seedBackfill(db, { ...RANGE, ...wish });
  await sql("UPDATE backfill SET owner_job = $2 WHERE id = $1", [id, job]);
  return id;
}

interface Row {
  readonly id: number;
  readonly state: string;
  readonly logical_date: Date;
}

/** All runs with a logical date, in the order of dates. */
async function runs(): Promise<Row[]> {
  return sql<Row>("SELECT * FROM dag_run WHERE logical_date IS NOT NULL ORDER BY logical_date");
}

/** The hours of the logical dates, one per run. */
async function dates(): Promise<number[]> {
  return (await runs()).map((run) => run.logical_date.getUTCHours());
}

async function noted(id: number): Promise<string[]> {
  const rows = await sql<{ action: string }>(
    "SELECT action FROM backfill_date WHERE backfill_id = $1 ORDER BY ordinal",
    [id],
  );
  return rows.map((row) => row.action);
}

async function seedDated(
  hour: number,
  state: "queued" | "running" | "success" | "failed",
): Promise<number[]> {
  const ids = await seedRuns(db, "d", { state, ...(state === "running" ? { ownerJob: job } : {}) });
  await sql("UPDATE dag_run SET logical_date = $2 WHERE id = $1", [
    ids[0],
    new Date(Date.UTC(2020, 0, 1, hour)),
  ]);
  if (state === "failed")
    await sql(
      `INSERT INTO task_instance (dag_run_id, task_id, state, pool, pool_slots, queue, priority_weight, operator)
       VALUES ($1, 't0', 'failed', 'default_pool', 1, 'default', 1, 'task')`,
      ids,
    );
  return ids;
}

function end(): Promise<object[]> {
  return sql("UPDATE dag_run SET state = 'success', ended_at = now() WHERE state = 'queued'");
}

async function startQueued(): Promise<number[]> {
  const started = await startQueuedRuns(db, { jobId: job, limit: 64, columns: async () => NO_TASKS });
  return started.map((run) => run.id);
}

async function startOwn(): Promise<number[]> {
  const started = await startBackfillRuns(db, { jobId: job, limit: 64, columns: async () => NO_TASKS });
  return started.map((run) => run.id);
}

function sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
  return db.rows<R>(adhoc(text), values);
}

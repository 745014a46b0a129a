/** The engine's own signals about runs, tasks and triggers. */
import type { Json } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { seedTrigger, seedTriggerer, seedWait } from "../../../test/support/trigger-seed.ts";
import { planner } from "../../model/calendar/planner.ts";
import { adhoc, type Database } from "../database/database.ts";
import { type ClearEdit, clearTasks } from "../edit/clear-tasks.ts";
import { cancelRun, markRun } from "../edit/end-run.ts";
import { markTasks } from "../edit/mark-tasks.ts";
import { createDueRuns } from "../plan/due-runs.ts";
import { storeEventRuns } from "../plan/event-runs.ts";
import { storeTimedRuns } from "../plan/timed-schedules.ts";
import { type InstanceColumns, startQueuedRuns } from "../run/run-claim.ts";
import { createRun } from "../run/run-create.ts";
import { listSchedules, moveSchedule } from "../signal/signal-schedules.ts";
import { postponeTriggers } from "../trigger/trigger-claim.ts";
import { fireDueTimed, fireTriggers } from "../trigger/trigger-fire.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

type Told = readonly [key: string, value: Json];

/** Signals in the order of the log. */
function log(namespace: string): Promise<{ id: number; key: string; value: Json }[]> {
  return db.rows(adhoc("SELECT id, key, value FROM signal WHERE namespace = $1 ORDER BY tx, id"), [
    namespace,
  ]);
}

async function told(namespace: string): Promise<Told[]> {
  return (await log(namespace)).map(({ key, value }) => [key, value]);
}

async function states(namespace: "run" | "task", key: string): Promise<string[]> {
  const of = (await told(namespace)).filter(([each]) => each === key);
  return of.map(([, value]) => (value as { state: string }).state);
}

async function create(dagId: string, runId: string): Promise<number> {
  const result = await db.transaction((tx) =>
    createRun(tx, {
      ...{ dagId, runId, logicalDate: null, interval: null, runAfter: null, conf: {}, note: null },
      ...{ triggeredBy: "operator", triggeringUser: null },
    }),
  );
  return result.kind === "created" ? result.dagRunId : 0;
}

async function start(): Promise<void> {
  const jobId = await seedJob(db);
  await startQueuedRuns(db, { jobId, limit: 100, columns: async () => ONE_TASK });
}

function clear(id: number, edit: Partial<ClearEdit> = {}) {
  const runs = [{ dagRunId: id, tasks: null }];
  const rest = { resetRuns: true, latestVersion: false, refuseRunning: false, dryRun: false } as const;
  return db.transaction((tx) => clearTasks(tx, { runs, only: "any", ...rest, ...edit }));
}

describe("the signal of a new run", () => {
  it("is sent once for a run created by a user or a task, and not on a conflict", async () => {
    await seedDag(db, "d");
    expect(await create("d", "r")).toBeGreaterThan(0);
    expect(await create("d", "r")).toBe(0);
    expect(await told("run")).toEqual([["d/r", { state: "queued" }]]);
  });

  it("is sent for a scheduled run, with its tick", async () => {
    const start = new Date(Date.now() - 3.5 * 3_600_000);
    const schedule = { kind: "interval", everyMs: 3_600_000, style: "trigger" } as const;
    await seedDag(db, "hourly", { schedule, start: start.toISOString(), catchup: true });
    while ((await createDueRuns(db, planner, 10)).dags > 0);
    const runs = await db.rows<{ run_id: string; logical_date: Date; run_after: Date }>(
      adhoc("SELECT run_id, logical_date, run_after FROM dag_run ORDER BY run_after"),
    );
    expect(runs.length).toBeGreaterThan(2);
    expect(await told("run")).toEqual(runs.map(({ run_id }) => [`hourly/${run_id}`, { state: "queued" }]));
    expect(await told("schedule")).toEqual(
      runs.map((run) => [
        "hourly",
        {
          runId: run.run_id,
          logicalDate: run.logical_date.toISOString(),
          runAfter: run.run_after.toISOString(),
        },
      ]),
    );
  });

  it("is sent for a run created by an event, a moment or a signal; for a trigger's event with the trigger's signal", async () => {
    const triggerer = await seedTriggerer(db);
    for (const dagId of ["feed", "once"]) await seedDag(db, dagId);
    const feed = await seedTrigger(db, { dagId: "feed", ownerJob: triggerer });
    const event = (runId: string) => ({ triggerId: feed, runId, payload: "secret" });
    await storeEventRuns(db, triggerer, [event("e1"), event("e2")]);
    await storeEventRuns(db, triggerer, [event("e2"), event("e3")]);
    const moment = await seedTrigger(db, { dagId: "once", timed: { payload: null }, wakeMs: -1_000 });
    expect(await storeTimedRuns(db)).toBe(1);
    expect(await storeTimedRuns(db)).toBe(0);
    const [once] = await db.rows<{ run_id: string }>(
      adhoc("SELECT run_id FROM dag_run WHERE dag_id = 'once'"),
    );
    const leaf = { namespace: "default", key: "k", where: null, equals: null, inRun: false } as const;
    const when = { kind: "signal", ...leaf } as const;
    await seedDag(db, "hearing", { schedule: { kind: "signal", when, route: null } });
    const [schedule] = await listSchedules(db);
    const to = { ...schedule!.position, id: schedule!.position.id + 1 };
    const runs = [{ runId: "signal__1", conf: {} }];
    expect(await moveSchedule(db, schedule!, { to, state: null, received: 1, runs })).toMatchObject({
      added: 1,
    });

    const queued = { state: "queued" };
    expect(await told("run")).toEqual([
      ...["e1", "e2", "e3"].map((run) => [`feed/${run}`, queued]),
      [`once/${once!.run_id}`, queued],
      ["hearing/signal__1", queued],
    ]);
    const fired = { kind: "test.kind", outcome: "event", waits: 0 };
    expect(await told("trigger")).toEqual([
      ...["e1", "e2", "e3"].map((runId) => ["feed", { trigger: feed, ...fired, runId }]),
      ["once", { trigger: moment, ...fired, runId: once!.run_id }],
    ]);
  });
});

describe("signals of state changes", () => {
  it("are sent when a run starts, is ended, queued again or cancelled, and not for an edit without effect", async () => {
    await seedDag(db, "d");
    const id = await create("d", "r");
    await start();
    await clear(id);
    await db.transaction((tx) => markRun(tx, id, "success"));
    await db.transaction((tx) => markRun(tx, id, "success"));
    await clear(id);
    await clear(id);
    await start();
    await db.transaction((tx) => cancelRun(tx, id, "no more"));
    await db.transaction((tx) => markRun(tx, id, "queued"));
    expect(await states("run", "d/r")).toEqual([
      ...["queued", "running", "success"],
      ...["queued", "running", "failed", "queued"],
    ]);
  });

  it("are sent for tasks that are marked or cleared manually", async () => {
    await seedDag(db, "d");
    const id = await create("d", "r");
    await start();
    const runs = [{ dagRunId: id, tasks: null }];
    await db.transaction((tx) => markTasks(tx, { runs, state: "failed", dryRun: true }));
    await db.transaction((tx) => markTasks(tx, { runs, state: "failed", dryRun: false }));
    await clear(id, { dryRun: true });
    await clear(id);
    await db.rows(adhoc("UPDATE task_instance SET state = 'running', try_number = 1"));
    await db.rows(adhoc("UPDATE pool SET occupied = 1 WHERE name = 'default_pool'"));
    await clear(id);
    await db.transaction((tx) => markRun(tx, id, "success"));
    const value = (state: string, tryNumber: number) => ({ state, mapIndex: -1, tryNumber });
    expect(await told("task")).toEqual([
      ["d/r/t0", value("failed", 0)],
      ["d/r/t0", value("pending", 0)],
      ["d/r/t0", value("restarting", 1)],
      ["d/r/t0", value("success", 1)],
    ]);
    // Marking a task of a running run does not change the run.
    expect(await states("run", "d/r")).toEqual(["queued", "running", "success"]);
  });

  it("are in the order of the changes, also if a later change is made by an older transaction", async () => {
    await seedDag(db, "d");
    const id = await create("d", "r");
    await start();
    // Its transaction id is lower than those of the following changes; its own signal comes after theirs.
    await db.transaction(async (old) => {
      await old.rows(adhoc("SELECT pg_current_xact_id()"));
      await db.transaction((tx) => markRun(tx, id, "failed"));
      await db.transaction((tx) => markRun(tx, id, "queued"));
      await markRun(old, id, "success");
    });
    expect(await states("run", "d/r")).toEqual(["queued", "running", "failed", "queued", "success"]);
  });
});

describe("the signal of a fired trigger", () => {
  it("has the number of its waits, and not its payload", async () => {
    await seedDag(db, "d");
    const [runId = 0] = await seedRuns(db, "d", { state: "running" });
    const jobId = await seedTriggerer(db);
    const ids = [];
    for (const waits of [2, 0, 1]) {
      const triggerId = await seedTrigger(db, { ownerJob: jobId });
      for (let at = 0; at < waits; at++) await seedWait(db, { runId, triggerId });
      ids.push(triggerId);
    }
    const error = { name: "E", message: "secret", stack: null, code: null };
    await fireTriggers(db, jobId, [
      { id: ids[0]!, outcome: { kind: "event", payload: "secret \u0000" } },
      { id: ids[1]!, outcome: { kind: "failed", error } },
      { id: ids[2]!, outcome: { kind: "ending", ending: { kind: "success" } as never } },
    ]);
    await fireTriggers(db, jobId, [{ id: ids[0]!, outcome: { kind: "event", payload: "again" } }]);
    const outcomes = ["event", "failed", "ending"];
    expect((await told("trigger")).toSorted(([a], [b]) => a.localeCompare(b))).toEqual(
      ids.map((trigger, at) => [
        `test.kind/${trigger}`,
        { trigger, kind: "test.kind", outcome: outcomes[at], waits: [2, 0, 1][at] },
      ]),
    );
  });

  it("is sent in the statement that fires timed triggers, for any number of them", async () => {
    await seedDag(db, "d");
    const [runId] = await seedRuns(db, "d", { state: "running" });
    const count = 10_000;
    await db.rows(
      adhoc(`INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at, timed)
             SELECT sha256(i::text::bytea), 'k', '{}', 'default', 1, now() - interval '1 s', '{"payload":1}'
             FROM generate_series(1, ${count}) AS i`),
    );
    await db.rows(
      adhoc(`INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                                   on_timeout, on_failure)
             SELECT gen_random_uuid(), $1, 't' || id, -1, 1, id, id, 'k', '{}', 'fail', 'fail' FROM trigger`),
      [runId],
    );
    expect(await fireDueTimed(db, count)).toMatchObject({ triggers: count, waits: count });
    const rows = await told("trigger");
    expect(rows).toHaveLength(count);
    expect(rows[0]![1]).toMatchObject({ kind: "k", outcome: "event", waits: 1 });
  });

  it("has the DAG as its key if the trigger of a schedule has failed", async () => {
    await seedDag(db, "feed");
    const [jobId, other] = [await seedTriggerer(db), await seedTriggerer(db)];
    const id = await seedTrigger(db, { dagId: "feed", ownerJob: jobId });
    await postponeTriggers(db, other, { ids: [id], delayMs: 1_000 });
    expect(await told("trigger")).toEqual([]);
    await postponeTriggers(db, jobId, { ids: [id], delayMs: 1_000 });
    const value = { trigger: id, kind: "test.kind", outcome: "failed", waits: 0, runId: null };
    expect(await told("trigger")).toEqual([["feed", value]]);
  });

  it("is sent in the order of versions if two replicas fire at once", async () => {
    await seedDag(db, "feed");
    const jobs = [await seedTriggerer(db), await seedTriggerer(db)];
    const seed = { dagId: "feed", ownerJob: jobs[0]!, standbyJob: jobs[1]!, replicas: 2 } as const;
    const triggerId = await seedTrigger(db, seed);
    await Promise.all(
      jobs.map(async (job) => {
        for (let n = 0; n < 30; n++)
          await storeEventRuns(db, job, [{ triggerId, runId: `${job}_${n}`, payload: n }]);
      }),
    );
    const versions = (await log("trigger")).map(({ id }) => id);
    expect(versions).toHaveLength(60);
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
  });
});

const ONE_TASK: InstanceColumns = {
  taskIds: ["t0"],
  maxTries: [1],
  pools: ["default_pool"],
  poolSlots: [1],
  limitKeys: [null],
  queues: ["default"],
  weights: [1],
  executors: [null],
  operators: ["task"],
};

import type { TriggerCall } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { pgProxy } from "../../../test/support/pg-proxy.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { seedTrigger, seedTriggerer } from "../../../test/support/trigger-seed.ts";
import { removeFiles } from "../dag/dag-catalogue.ts";
import { adhoc, CommitUnknownError, Database } from "../database/database.ts";
import { eventRunId, forgetEvents, storeEventRuns } from "./event-runs.ts";
import { nextTimedRunIn, storeTimedRuns } from "./timed-schedules.ts";

let test: TestDatabase;
let db: Database;
beforeEach(async () => {
  test = await testDatabase();
  db = test.db;
  return () => test.close();
});

interface RunRow {
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly run_type: string;
  readonly conf: unknown;
}

const runs = () =>
  db.rows<RunRow>(adhoc("SELECT dag_id, run_id, state, run_type, conf FROM dag_run ORDER BY id"));

describe("events of a schedule", () => {
  it("have ids that depend on the observed object, not on the poll interval", () => {
    const at = new Date("2026-01-01T00:00:00Z");
    const id = (kind: string, intervalMs: number) =>
      eventRunId({
        trigger: { kind, args: { path: "/in", intervalMs }, replicas: 1 },
        key: "k",
        payload: 1,
        at,
      });
    expect(id("tradewind.file", 10)).toBe(id("tradewind.file", 20));
    expect(id("acme.file", 10)).not.toBe(id("acme.file", 20));
  });

  it("are remembered for triggers that observe a state, one per trigger, until the state ends", async () => {
    await seedDag(db, "feed");
    const jobId = await seedTriggerer(db);
    const triggerId = await seedTrigger(db, { dagId: "feed", ownerJob: jobId });
    const memory = () => db.rows(adhoc("SELECT trigger_id, event FROM trigger_memory"));
    const event = (n: number, isRemembered: boolean) => ({
      triggerId,
      runId: `e${n}`,
      payload: { n },
      isRemembered,
    });
    await storeEventRuns(db, jobId, [event(1, true), event(2, true), event(3, false)]);
    expect(await memory()).toEqual([{ trigger_id: triggerId, event: { n: 2 } }]);
    // A job neither stores nor deletes the memory of another job's triggers.
    const other = await seedTriggerer(db);
    await storeEventRuns(db, other, [event(4, true)]);
    await forgetEvents(db, other, [triggerId]);
    expect(await memory()).toEqual([{ trigger_id: triggerId, event: { n: 2 } }]);
    await forgetEvents(db, jobId, [triggerId]);
    expect(await memory()).toEqual([]);
  });

  it("create queued runs of the current version, in order, with the event in the conf", async () => {
    await seedDag(db, "feed");
    const version = await seedDag(db, "feed");
    const jobId = await seedTriggerer(db);
    const triggerId = await seedTrigger(db, { dagId: "feed", ownerJob: jobId });
    const stored = await storeEventRuns(db, jobId, [
      { triggerId, runId: "event__z", payload: { n: 1 } },
      { triggerId, runId: "event__a", payload: "two\u0000" },
    ]);
    expect(stored.map(({ runId }) => runId)).toEqual(["event__z", "event__a"]);
    expect(await runs()).toEqual([
      {
        dag_id: "feed",
        run_id: "event__z",
        state: "queued",
        run_type: "signal_triggered",
        conf: { event: { n: 1 } },
      },
      {
        dag_id: "feed",
        run_id: "event__a",
        state: "queued",
        run_type: "signal_triggered",
        conf: { event: "two\u0000" },
      },
    ]);
    const versions = await db.rows<{ version_id: number }>(adhoc("SELECT DISTINCT version_id FROM dag_run"));
    expect(versions).toEqual([{ version_id: version }]);
  });

  it("are rejected from a job that no longer runs the trigger", async () => {
    await seedDag(db, "feed");
    const triggerId = await seedTrigger(db, { dagId: "feed", ownerJob: await seedTriggerer(db) });
    const late = await seedTriggerer(db);
    expect(await storeEventRuns(db, late, [{ triggerId, runId: "event__x", payload: 1 }])).toEqual([]);
    expect(await runs()).toEqual([]);
  });

  it("create one run when two replicas store the same event concurrently, and on redelivery", async () => {
    await seedDag(db, "feed");
    const [a, b] = [await seedTriggerer(db), await seedTriggerer(db)];
    const triggerId = await seedTrigger(db, { dagId: "feed", ownerJob: a, standbyJob: b, replicas: 2 });
    const events = Array.from({ length: 50 }, (_, n) => ({ triggerId, runId: `event__${n}`, payload: n }));
    const answers = await Promise.all([
      storeEventRuns(db, a, events),
      storeEventRuns(db, b, events.toReversed()),
      storeEventRuns(db, a, events),
    ]);
    for (const answer of answers) expect(answer).toHaveLength(50);
    expect(answers.flat().filter(({ dagRunId }) => dagRunId !== null)).toHaveLength(50);
    expect(await runs()).toHaveLength(50);
  });

  it("create one run when the reply to the commit is lost and they are stored again", async () => {
    await seedDag(db, "feed");
    const jobId = await seedTriggerer(db);
    const triggerId = await seedTrigger(db, { dagId: "feed", ownerJob: jobId });
    const proxy = await pgProxy(test.url);
    const shaky = Database.connect(proxy.url);
    const event = { triggerId, runId: "event__1", payload: 1 };
    proxy.set({ kind: "drop-commit-answer" });
    await expect(storeEventRuns(shaky, jobId, [event])).rejects.toThrow(CommitUnknownError);
    proxy.set({ kind: "pass" });
    expect(await storeEventRuns(shaky, jobId, [event])).toEqual([
      { triggerId, runId: "event__1", dagRunId: null },
    ]);
    expect(await runs()).toHaveLength(1);
    await shaky.close();
    await proxy.close();
  });
});

describe("the run id of an event", () => {
  const at = new Date("2026-01-01T00:00:00Z");
  const trigger = { kind: "k", args: { a: 1, b: 2 }, replicas: 1 as const };
  const id = (event: object) => eventRunId({ trigger, key: null, payload: {}, at, ...event });

  it("is derived from its key, independent of time and job", () => {
    const later = new Date("2027-01-01T00:00:00Z");
    expect(id({ key: "1" })).toBe(id({ key: "1", at: later, payload: "other" }));
    expect(id({ key: "1" })).toBe(id({ key: "1", trigger: { ...trigger, args: { b: 2, a: 1 } } }));
    expect(id({ key: "1" })).not.toBe(id({ key: "2" }));
    expect(id({ key: "1" })).not.toBe(id({ key: "1", trigger: { ...trigger, args: {} } }));
  });

  it("is derived from its payload only for a replicated trigger", () => {
    const twice = { ...trigger, replicas: 2 as const };
    expect(id({ payload: { x: 1 } })).not.toBe(id({ payload: { x: 1 } }));
    expect(id({ payload: { x: 1 } })).toMatch(/^event__2026-01-01T00:00:00.000Z_\w{10}$/);
    expect(id({ payload: { x: 1, y: 2 }, trigger: twice })).toBe(
      id({ payload: { y: 2, x: 1 }, trigger: twice }),
    );
    expect(id({ payload: { x: 1 }, trigger: twice })).not.toBe(id({ payload: { x: 2 }, trigger: twice }));
    expect(id({ payload: "1", trigger: twice })).not.toBe(id({ key: "1", trigger: twice }));
  });
});

describe("the trigger of a DAG's schedule", () => {
  const call = (facts: Partial<TriggerCall> = {}): TriggerCall => ({
    kind: "test.feed",
    args: { topic: "orders" },
    source: "builtin",
    queue: "default",
    replicas: 1,
    wake: null,
    timed: null,
    ...facts,
  });
  const publish = (trigger: TriggerCall, dagId = "feed", start: string | null = null) =>
    seedDag(db, dagId, { schedule: { kind: "trigger", trigger }, start });
  const rows = () =>
    db.rows<{
      id: number;
      dag_id: string;
      kind: string;
      args: object;
      bundle_hash: string | null;
      wake_at: Date;
    }>(adhoc("SELECT id, dag_id, kind, args, bundle_hash, wake_at FROM trigger ORDER BY id"));

  it("is a row of the DAG, kept while the schedule is unchanged and deleted with it", async () => {
    await publish(call());
    await publish(call(), "twin");
    const [first, twin] = await rows();
    expect(first).toMatchObject({
      dag_id: "feed",
      kind: "test.feed",
      args: { topic: "orders" },
      bundle_hash: null,
    });
    expect(twin).toMatchObject({ dag_id: "twin" });
    await publish(call());
    expect((await rows()).map(({ id }) => id)).toEqual([first?.id, twin?.id]);
    await publish(call({ args: { topic: "refunds" } }));
    expect(await rows()).toMatchObject([{ dag_id: "twin" }, { dag_id: "feed", args: { topic: "refunds" } }]);
    await removeFiles(db, ["feed.ts"]);
    expect(await rows()).toHaveLength(2);
    await seedDag(db, "feed", { schedule: { kind: "none" } });
    expect(await rows()).toMatchObject([{ dag_id: "twin" }]);
  });

  it("is replaced when the code of its bundle changes, and sleeps until the DAG's start", async () => {
    const start = new Date(Date.now() + 3_600_000).toISOString();
    await publish(call({ source: "bundle" }), "feed", start);
    const [before] = await rows();
    expect(before?.bundle_hash).toEqual(expect.any(String));
    expect(before?.wake_at.toISOString()).toBe(start);
    await publish(call({ source: "bundle" }), "feed", start);
    const [after, ...rest] = await rows();
    expect(rest).toEqual([]);
    expect(after?.id).not.toBe(before?.id);
    expect(after?.bundle_hash).not.toBe(before?.bundle_hash);
  });

  it("creates one run for a moment, when it has come and the DAG is not paused", async () => {
    const moment = new Date(Date.now() - 1_000).toISOString();
    await publish(call({ wake: { at: moment }, timed: { payload: moment } }));
    await publish(call({ wake: { afterMs: 3_600_000 }, timed: { payload: null } }), "later");
    await db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'feed'"));
    expect(await nextTimedRunIn(db)).toBeGreaterThan(3_000_000);
    expect(await storeTimedRuns(db)).toBe(0);
    await db.rows(adhoc("UPDATE dag SET is_paused = false"));
    expect(await nextTimedRunIn(db)).toBeLessThan(0);
    const made = await Promise.all([storeTimedRuns(db), storeTimedRuns(db), storeTimedRuns(db)]);
    expect(made.reduce((sum, n) => sum + n, 0)).toBe(1);
    expect(await runs()).toMatchObject([{ dag_id: "feed", conf: { event: moment } }]);
    await publish(call({ wake: { at: moment }, timed: { payload: moment } }));
    expect(await storeTimedRuns(db)).toBe(0);
  });

  it("creates no run for a moment after the DAG's end, and one for an earlier moment, however late", async () => {
    await publish(call({ timed: { payload: null } }));
    const past = "2026-01-31T00:00:00Z";
    await db.rows(
      adhoc("UPDATE dag_version SET manifest = manifest || jsonb_build_object('end', $1::text)"),
      [past],
    );
    expect(await nextTimedRunIn(db)).toBeNull();
    expect(await storeTimedRuns(db)).toBe(0);
    await db.rows(adhoc("UPDATE trigger SET wake_at = $1"), [past]);
    expect(await nextTimedRunIn(db)).toBeLessThan(0);
    expect(await storeTimedRuns(db)).toBe(1);
  });
});

import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seedDag, seedRuns, waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import {
  seedTrigger,
  seedTriggerer,
  seedWait,
  triggerRow,
  waitRow,
} from "../../../test/support/trigger-seed.ts";
import { adhoc, type Database, sqlState } from "../database/database.ts";
import { fireDueTimed, fireTriggers } from "./trigger-fire.ts";
import { deleteUnwaited, deleteUnwaitedCold, nextTimedIn, unwaitedTriggers } from "./triggers.ts";

let db: Database;
let runId: number;
let jobId: number;
const event = (payload: string) => ({ kind: "event" as const, payload });

beforeAll(async () => {
  ({ db } = await testDatabase());
  await seedDag(db, "dag");
  [runId = 0] = await seedRuns(db, "dag", { state: "running" });
});

beforeEach(async () => {
  await db.rows(adhoc("DELETE FROM deferral"));
  await db.rows(adhoc("DELETE FROM trigger"));
  jobId = await seedTriggerer(db);
});

describe("a trigger that fires", () => {
  it("sets the outcome of every wait once, and is deleted", async () => {
    const id = await seedTrigger(db, { ownerJob: jobId });
    const other = await seedTrigger(db, { ownerJob: jobId });
    const waits = [
      await seedWait(db, { runId, triggerId: id }),
      await seedWait(db, { runId, triggerId: id }),
    ];
    const bystander = await seedWait(db, { runId, triggerId: other });
    const { fired } = await fireTriggers(db, jobId, [{ id, outcome: event("a\u0000b") }]);
    expect([...fired.keys()]).toEqual([id]);
    expect(
      fired
        .get(id)
        ?.map(({ attempt }) => attempt)
        .sort(),
    ).toEqual(waits.sort());
    for (const attempt of waits)
      expect(await waitRow(db, attempt)).toMatchObject({
        waits_on: null,
        fired_at: expect.any(Date),
        outcome: { kind: "event", payload: "a\u0000b" },
      });
    expect(await waitRow(db, bystander)).toMatchObject({ waits_on: other, fired_at: null });
    const again = await fireTriggers(db, jobId, [{ id, outcome: event("again") }]);
    expect(again.fired.size).toBe(0);
    expect([...again.gone]).toEqual([id]);
  });

  it("is rejected from a job that no longer owns it, and reported as existing", async () => {
    const id = await seedTrigger(db, { ownerJob: await seedTriggerer(db) });
    const attempt = await seedWait(db, { runId, triggerId: id });
    const { fired, gone } = await fireTriggers(db, jobId, [{ id, outcome: event("late") }]);
    expect([fired.size, gone.size]).toEqual([0, 0]);
    expect(await waitRow(db, attempt)).toMatchObject({ waits_on: id, fired_at: null });
  });

  it("fires once when two jobs that both own it fire concurrently", async () => {
    for (let round = 0; round < 20; round++) {
      const other = await seedTriggerer(db);
      const id = await seedTrigger(db, { ownerJob: jobId, standbyJob: other, replicas: 2 });
      const attempt = await seedWait(db, { runId, triggerId: id });
      const answers = await Promise.all(
        [jobId, other].map((job) => fireTriggers(db, job, [{ id, outcome: event(`by ${job}`) }])),
      );
      expect(answers.filter(({ fired }) => fired.has(id))).toHaveLength(1);
      const winner = answers[0]?.fired.has(id) ? jobId : other;
      expect((await waitRow(db, attempt)).outcome).toEqual(event(`by ${winner}`));
    }
  });

  it("waits for an earlier subscriber, and fires for it, too", async () => {
    const id = await seedTrigger(db, { ownerJob: jobId });
    let firing: ReturnType<typeof fireTriggers> | undefined;
    const attempt = await db.transaction(async (tx) => {
      const late = await seedWait(tx, { runId, triggerId: id });
      firing = fireTriggers(db, jobId, [{ id, outcome: event("both") }]);
      await waitingForLock(db);
      return late;
    });
    expect((await firing)?.fired.get(id)).toHaveLength(1);
    expect((await waitRow(db, attempt)).outcome).toEqual(event("both"));
  });

  it("leaves no waits behind: a later subscriber finds it deleted", async () => {
    const id = await seedTrigger(db, { ownerJob: jobId });
    let subscribing: Promise<unknown> | undefined;
    await db.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT 1 FROM trigger WHERE id = $1 FOR UPDATE"), [id]);
      subscribing = seedWait(db, { runId, triggerId: id }).catch((error) => sqlState(error));
      await waitingForLock(db);
      await tx.rows(adhoc("DELETE FROM trigger WHERE id = $1"), [id]);
    });
    expect(await subscribing).toBe("23503");
  });

  it("skips a wait that its owner ended while the fire waited for its lock", async () => {
    const id = await seedTrigger(db, { ownerJob: jobId });
    const attempt = await seedWait(db, { runId, triggerId: id });
    let firing: ReturnType<typeof fireTriggers> | undefined;
    await db.transaction(async (tx) => {
      await tx.rows(
        adhoc(
          "UPDATE deferral SET waits_on = NULL, ended_at = now(), end_kind = 'timeout' WHERE attempt = $1",
        ),
        [attempt],
      );
      firing = fireTriggers(db, jobId, [{ id, outcome: event("too late") }]);
      await waitingForLock(db);
    });
    expect((await firing)?.fired.get(id)).toEqual([]);
    expect(await waitRow(db, attempt)).toMatchObject({ fired_at: null, outcome: null });
  });
});

describe("timed triggers", () => {
  it("fire when due and not before, with their time as the default payload", async () => {
    const due = await seedTrigger(db, { timed: { payload: { a: "\u0000" } }, wakeMs: -50 });
    const delta = await seedTrigger(db, { timed: { payload: null }, wakeMs: -20 });
    const later = await seedTrigger(db, { timed: { payload: "later" }, wakeMs: 60_000 });
    const hot = await seedTrigger(db, { wakeMs: -100 });
    const waits = await Promise.all(
      [due, delta, later, hot].map((triggerId) => seedWait(db, { runId, triggerId })),
    );
    const moment = (await triggerRow(db, delta))?.wake_at.toISOString();
    expect(await nextTimedIn(db)).toBeLessThan(0);
    expect(await fireDueTimed(db, 10)).toEqual({ triggers: 2, waits: 2, dagRunIds: [runId] });
    expect(await fireDueTimed(db, 10)).toEqual({ triggers: 0, waits: 0, dagRunIds: [] });
    const outcomes = await Promise.all(waits.map(async (attempt) => (await waitRow(db, attempt)).outcome));
    expect(outcomes).toEqual([
      { kind: "event", payload: { a: "\u0000" } },
      { kind: "event", payload: moment },
      null,
      null,
    ]);
    const wait = await nextTimedIn(db);
    expect(wait).toBeGreaterThan(50_000);
  });

  it("fire once each when two triggerers compete for many of them", async () => {
    const attempts: string[] = [];
    for (let i = 0; i < 300; i++) {
      const id = await seedTrigger(db, { timed: { payload: i }, wakeMs: -1_000 + i });
      attempts.push(await seedWait(db, { runId, triggerId: id }));
    }
    const racers = Array.from({ length: 4 }, async () => {
      let waits = 0;
      for (let idle = 0; idle < 3; ) {
        const fired = await fireDueTimed(db, 7);
        waits += fired.waits;
        idle = fired.triggers === 0 ? idle + 1 : 0;
      }
      return waits;
    });
    const total = (await Promise.all(racers)).reduce((sum, waits) => sum + waits, 0);
    expect(total).toBe(300);
    const outcomes = await Promise.all(attempts.map(async (attempt) => (await waitRow(db, attempt)).outcome));
    expect(outcomes).toEqual(attempts.map((_, i) => ({ kind: "event", payload: i })));
    expect(await db.rows(adhoc("SELECT 1 FROM trigger"))).toEqual([]);
  });

  it("wait for an earlier subscriber", async () => {
    const id = await seedTrigger(db, { timed: { payload: "x" }, wakeMs: -1 });
    const subscribed = await db.transaction(async (tx) => {
      const attempt = await seedWait(tx, { runId, triggerId: id });
      // The subscriber has locked the row: it is skipped, not fired without this wait.
      expect((await fireDueTimed(db, 10)).triggers).toBe(0);
      return attempt;
    });
    expect((await fireDueTimed(db, 10)).waits).toBe(1);
    expect((await waitRow(db, subscribed)).outcome).toEqual(event("x"));
  });
});

describe("a trigger without waits", () => {
  it("is deleted, unless a wait is added in time", async () => {
    const id = await seedTrigger(db, { ownerJob: jobId });
    const wanted = await seedTrigger(db, { ownerJob: jobId });
    await seedWait(db, { runId, triggerId: wanted });
    const others = await seedTrigger(db, { ownerJob: await seedTriggerer(db) });
    expect(await unwaitedTriggers(db, jobId)).toEqual([id]);
    expect(await deleteUnwaited(db, jobId, [id, wanted, others])).toEqual([id]);
    expect(await triggerRow(db, wanted)).toBeDefined();
    expect(await triggerRow(db, others)).toBeDefined();
  });

  it("is kept for an earlier subscriber that has not committed yet", async () => {
    const id = await seedTrigger(db, { ownerJob: jobId });
    let deleting: Promise<number[]> | undefined;
    const attempt = await db.transaction(async (tx) => {
      const late = await seedWait(tx, { runId, triggerId: id });
      deleting = deleteUnwaited(db, jobId, [id]);
      await waitingForLock(db);
      return late;
    });
    expect(await deleting).toEqual([]);
    expect((await waitRow(db, attempt)).waits_on).toBe(id);
  });

  it("is deleted in pages if it has no owner; a trigger with a wait or an owner, or of a schedule, is kept", async () => {
    const first = await seedTrigger(db, { wakeMs: 3_600_000, timed: { payload: null } });
    const timed = await seedTrigger(db, { wakeMs: 3_600_000, timed: { payload: null } });
    await seedWait(db, { runId, triggerId: timed });
    const run = await seedTrigger(db, { ownerJob: jobId });
    const schedule = await seedTrigger(db, { dagId: "dag", wakeMs: 3_600_000 });
    const cold = await seedTrigger(db, { wakeMs: 3_600_000 });
    const left = async () => {
      const ids = [first, timed, run, schedule, cold];
      const rows = await Promise.all(ids.map((id) => triggerRow(db, id)));
      return ids.filter((_, at) => rows[at] !== undefined);
    };
    const next = await deleteUnwaitedCold(db, first - 1, 2);
    expect([next, await left()]).toEqual([timed, [timed, run, schedule, cold]]);
    expect(await deleteUnwaitedCold(db, next, 100)).toBe(0);
    expect(await left()).toEqual([timed, run, schedule]);
    await db.rows(adhoc("DELETE FROM deferral WHERE waits_on = $1"), [timed]);
    await deleteUnwaitedCold(db, 0, 10_000);
    expect(await left()).toEqual([run, schedule]);
  });

  it("is kept without an owner for an earlier subscriber that has not committed yet", async () => {
    const id = await seedTrigger(db, { wakeMs: 3_600_000, timed: { payload: null } });
    let deleting: Promise<number> | undefined;
    const attempt = await db.transaction(async (tx) => {
      const late = await seedWait(tx, { runId, triggerId: id });
      deleting = deleteUnwaitedCold(db, id - 1, 1);
      await waitingForLock(db);
      return late;
    });
    await deleting;
    expect((await waitRow(db, attempt)).waits_on).toBe(id);
  });
});

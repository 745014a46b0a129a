import { randomBytes, randomUUID } from "node:crypto";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seedDag, seedRuns, waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { recordedSteps, recordStep } from "../task/journal.ts";
import { type DeferralWrite, deferralCalls, type TriggerWrite } from "./deferrals.ts";

let db: Database;
let runId: number;
const HOUR_MS = 3_600_000;

beforeAll(async () => {
  ({ db } = await testDatabase());
  await seedDag(db, "dag");
  [runId = 0] = await seedRuns(db, "dag", { state: "running" });
});

function wait(fingerprint: string, wake: Partial<TriggerWrite>): DeferralWrite {
  return {
    attempt: randomUUID(),
    runId,
    taskId: "t0",
    mapIndex: -1,
    tryNumber: 1,
    name: null,
    method: "go",
    kwargs: {},
    onTimeout: "fail",
    onFailure: "fail",
    timeoutAt: null,
    scheduledAt: null,
    onCancel: null,
    trigger: {
      fingerprint,
      kind: "test.kind",
      args: {},
      bundleHash: null,
      queue: "default",
      replicas: 1,
      wakeAt: null,
      wakeAfterMs: null,
      timed: null,
      ...wake,
    },
  };
}

describe("waits for the same trigger", () => {
  let fingerprint: string;
  beforeEach(() => {
    fingerprint = randomBytes(32).toString("hex");
  });

  const wakesIn = async () => {
    const sql =
      "SELECT extract(epoch FROM wake_at - now()) * 1000 AS ms FROM trigger WHERE fingerprint = decode($1, 'hex')";
    const rows = await db.rows<{ ms: string }>(adhoc(sql), [fingerprint]);
    return rows.map(({ ms }) => Math.round(Number(ms) / HOUR_MS) || 0);
  };

  it("set the earliest wake-up when they begin in one batch", async () => {
    const late = { wakeAt: Date.now() + 5 * HOUR_MS };
    const soon = { wakeAt: Date.now() + 2 * HOUR_MS };
    await db.pipeline(
      deferralCalls([wait(fingerprint, late), wait(fingerprint, soon), wait(fingerprint, late)], []),
    );
    expect(await wakesIn()).toEqual([2]);
  });

  it("set the earliest wake-up when they begin one after the other", async () => {
    await db.pipeline(deferralCalls([wait(fingerprint, { wakeAt: Date.now() + 5 * HOUR_MS })], []));
    await db.pipeline(deferralCalls([wait(fingerprint, { wakeAt: Date.now() + 7 * HOUR_MS })], []));
    expect(await wakesIn()).toEqual([5]);
    await db.pipeline(deferralCalls([wait(fingerprint, {})], []));
    expect(await wakesIn()).toEqual([0]);
  });
});

describe("a step that is recorded while its run is edited", () => {
  it("waits for the edit without blocking it", async () => {
    const attempt = randomUUID();
    const key = { runId, taskId: "t0", mapIndex: -1, tryNumber: 1, attempt };
    await db.rows(
      adhoc(`INSERT INTO task_instance (dag_run_id, task_id, map_index, state, try_number, attempt, pool, pool_slots, queue,
                                        priority_weight, operator)
             VALUES ($1, 't0', -1, 'running', 1, $2, 'default_pool', 1, 'default', 1, 'task')
             ON CONFLICT (dag_run_id, task_id, map_index) DO UPDATE SET state = 'running', attempt = $2, try_number = 1`),
      [runId, attempt],
    );
    let remembered: Promise<boolean> | undefined;
    await db.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT 1 FROM dag_run WHERE id = $1 FOR UPDATE"), [runId]);
      remembered = recordStep(db, key, { name: "submit", value: 1 });
      remembered.catch(() => {});
      await waitingForLock(db);
      await tx.rows(
        adhoc("UPDATE task_instance SET attempt = NULL, state = 'pending' WHERE dag_run_id = $1"),
        [runId],
      );
    });
    expect(await remembered).toBe(false);
    expect(await recordedSteps(db, key)).toEqual({});
  });
});

/** Ends of attempts in one batch and in several. */
import { beforeEach, describe, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { type AttemptWrite, attemptCall } from "./ended-attempts.ts";

const ATTEMPT = "00000000-0000-4000-8000-000000000001";
const SELECT = adhoc("SELECT state, reason, ended_at, retry_at FROM task_attempt");

let db: Database;
let deferred: AttemptWrite;
let by: { jobId: number; hostname: string };

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  await seedDag(db, "etl");
  const [runId] = await seedRuns(db, "etl");
  by = { jobId: await seedJob(db), hostname: "here" };
  deferred = {
    ...{ attempt: ATTEMPT, runId: runId!, taskId: "wait", mapIndex: -1, tryNumber: 1, state: "deferred" },
    ...{ scheduledAt: null, queuedAt: null, startedAt: 1_000, endedAt: 2_000, retryAt: null },
    ...{ pid: null, reason: null },
  };
  return () => test.close();
});

const failed = (): AttemptWrite => ({
  ...deferred,
  ...{ state: "failed", endedAt: 3_000, retryAt: 9_000, reason: "the wait timed out" },
});

describe("an attempt that deferred, and whose wait has ended its try", () => {
  const ended = {
    ...{ state: "failed", reason: "the wait timed out" },
    ...{ ended_at: new Date(2_000), retry_at: new Date(9_000) },
  };

  it("has the state of the end if both are in one batch", async () => {
    await db.pipeline([attemptCall([deferred, failed()], by)]);
    expect(await db.rows(SELECT, [])).toEqual([ended]);
  });

  it("has it if they are in two batches, also when the second is sent again", async () => {
    await db.pipeline([attemptCall([deferred], by)]);
    for (let time = 0; time < 2; time += 1) await db.pipeline([attemptCall([failed()], by)]);
    expect(await db.rows(SELECT, [])).toEqual([ended]);
  });
});

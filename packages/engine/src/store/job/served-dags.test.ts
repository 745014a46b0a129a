/** Statements that the tests of a whole scheduler with `--dags` do not cover. */
import { beforeEach, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { seedBackfill } from "../../../test/support/seed-backfill.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adoptBackfill, hasFreeBackfill } from "../backfill/backfill-claim.ts";
import { adhoc, type Database } from "../database/database.ts";
import { nextDueIn, planContinuous } from "../plan/due-runs.ts";
import { claimQuestions, nextQuestionIn } from "../plan/timetable-plans.ts";
import { nextQueuedAt } from "../run/run-claim.ts";
import { unknownDags } from "./served-dags.ts";

const OTHERS = ["other", "unknown"];
let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

it("adopts no backfill of another DAG", async () => {
  await seedDag(db, "d", { schedule: { kind: "interval", everyMs: 3_600_000, style: "trigger" } });
  const id = await seedBackfill(db, { dagId: "d", from: "2020-01-01T00:00:00Z", to: "2020-01-01T09:00:00Z" });
  const by = { jobId: await seedJob(db), has: 0, mayJudge: true };
  expect(await hasFreeBackfill(db, OTHERS)).toBe(false);
  expect(await adoptBackfill(db, { ...by, dags: OTHERS })).toBeUndefined();
  expect(await hasFreeBackfill(db, ["d"])).toBe(true);
  expect(await adoptBackfill(db, { ...by, dags: ["d"] })).toMatchObject({ id });
});

it("calls no timetable of another DAG", async () => {
  await seedDag(db, "d", { schedule: { kind: "timetable", name: "Own", args: null } });
  expect(await nextQuestionIn(db, undefined, OTHERS)).toBeNull();
  expect(await claimQuestions(db, 1, 1_000, undefined, OTHERS)).toEqual([]);
  expect(await nextQuestionIn(db, undefined, ["d"])).not.toBeNull();
  expect(await claimQuestions(db, 1, 1_000, undefined, ["d"])).toMatchObject([{ dagId: "d" }]);
});

it("plans no run of another DAG, and sets no timer for one", async () => {
  await seedDag(db, "loop", { schedule: { kind: "continuous" } });
  await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
  await seedRuns(db, "loop", { ageMs: -60_000 });
  expect(await nextQueuedAt(db, OTHERS)).toBeNull();
  expect(await nextQueuedAt(db, ["loop"])).not.toBeNull();
  await db.rows(adhoc("DELETE FROM dag_run"));
  expect(await planContinuous(db, OTHERS)).toBe(0);
  expect(await planContinuous(db, ["loop"])).toBe(1);
  expect(await nextDueIn(db, OTHERS)).toBeNull();
  expect(await nextDueIn(db, ["loop"])).not.toBeNull();
});

it("returns DAGs that are not published, or no longer", async () => {
  await seedDag(db, "d");
  await seedDag(db, "gone");
  await db.rows(adhoc("UPDATE dag SET is_stale = true WHERE dag_id = 'gone'"));
  expect(await unknownDags(db, ["d", "typo", "gone"])).toEqual(["gone", "typo"]);
});

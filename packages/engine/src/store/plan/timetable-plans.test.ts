/** Requests to timetables: which job may answer, and that late results are dropped. */
import { beforeEach, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { planner } from "../../model/calendar/planner.ts";
import { adhoc, type Database } from "../database/database.ts";
import { createDueRuns } from "./due-runs.ts";
import {
  claimQuestions,
  nextQuestionIn,
  type Question,
  releaseQuestions,
  storeAnswer,
  storeFailure,
} from "./timetable-plans.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  await publish();
  return () => test.close();
});

const schedule = { kind: "timetable", name: "Own", args: { n: 1 } } as const;
const publish = () => seedDag(db, "own", { schedule });
const AT = Date.UTC(2026, 0, 1);
const run = (at: number) => ({
  logicalDate: at,
  intervalStart: at - 5,
  intervalEnd: at + 5,
  runAfter: at + 7,
});
const HOLD = 60_000;

async function take(holdMs = HOLD): Promise<Question> {
  const [question] = await claimQuestions(db, 10, holdMs);
  if (!question) throw new Error("no request is due");
  return question;
}

async function planned(): Promise<number | null> {
  const row = await db.one<{ next: Date | null }>(
    adhoc("SELECT next_run_after AS next FROM dag WHERE dag_id = 'own'"),
  );
  return row?.next?.getTime() ?? null;
}

it("requests a plan for a new DAG with its newest code, and stores the result", async () => {
  const version = await publish();
  expect(await nextQuestionIn(db)).toBeLessThanOrEqual(0);
  const question = await take();
  expect(question).toMatchObject({ dagId: "own", last: null, failures: 0, dag: { schedule } });
  const hash = await db.one(adhoc("SELECT bundle_hash FROM dag_version WHERE id = $1"), [version]);
  expect({ bundle_hash: question.bundleHash }).toEqual(hash);
  expect(await claimQuestions(db, 10, HOLD)).toEqual([]);
  expect(await storeAnswer(db, question, run(AT))).toBe(true);
  expect(await planned()).toBe(AT + 7);
  expect(await nextQuestionIn(db)).toBeNull();
  expect(await storeAnswer(db, question, run(AT))).toBe(true);
});

it("requests the next run when a run is created", async () => {
  await storeAnswer(db, await take(), run(AT));
  expect(await createDueRuns(db, planner, 10)).toMatchObject({ created: 1, asked: 1 });
  expect(await planned()).toBeNull();
  const question = await take();
  expect(question.last).toEqual({ logicalDate: AT, intervalStart: AT - 5, intervalEnd: AT + 5 });
  expect(await storeAnswer(db, question, null)).toBe(true);
  expect(await planned()).toBeNull();
  expect(await nextQuestionIn(db)).toBeNull();
});

it("repeats the request before a run is created if the stored result is used late", async () => {
  const question = await take();
  await storeAnswer(db, question, run(Date.now() + 60_000));
  await db.rows(adhoc("UPDATE dag SET next_run_after = now() - interval '1 minute'"));
  await db.rows(adhoc("UPDATE dag_timetable SET answered_at = now() - interval '1 hour'"));
  expect(await createDueRuns(db, planner, 10)).toMatchObject({ created: 0, asked: 1 });
  expect(await planned()).toBeNull();
  const again = await take();
  expect(again).toMatchObject({ last: null });
  // A current result, although it was due earlier.
  await storeAnswer(db, again, run(Date.now() - 30_000));
  expect(await createDueRuns(db, planner, 10)).toMatchObject({ created: 1, asked: 1 });
});

it("skips a date that already has a run, and does not request it again", async () => {
  await storeAnswer(db, await take(), run(AT));
  await db.rows(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, version_id, triggered_by)
           SELECT dag_id, 'by_hand', 'manual', 'queued', $1, version_id, 'cli' FROM dag WHERE dag_id = 'own'`),
    [new Date(AT)],
  );
  expect(await createDueRuns(db, planner, 10)).toMatchObject({ created: 0, asked: 1 });
  expect((await take()).last?.logicalDate).toBe(AT);
});

it("drops the late result of a job whose hold expired, and accepts the next one", async () => {
  const dead = await take(0);
  const next = await take();
  expect(next.asked).toBeGreaterThan(dead.asked);
  expect(await storeAnswer(db, dead, run(1))).toBe(false);
  expect(await storeFailure(db, dead, failure)).toBe(false);
  await releaseQuestions(db, [dead]);
  expect(await claimQuestions(db, 10, HOLD)).toEqual([]);
  expect(await storeAnswer(db, next, run(AT))).toBe(true);
  expect(await planned()).toBe(AT + 7);
});

it("drops a result of old code after new code was published", async () => {
  const old = await take();
  await publish();
  expect(await storeAnswer(db, old, run(1))).toBe(false);
  expect(await planned()).toBeNull();
  expect((await take()).bundleHash).not.toBe(old.bundleHash);
});

it("gives each request to one job when called concurrently", async () => {
  for (let i = 0; i < 20; i++) await seedDag(db, `own${i}`, { schedule });
  const taken = (await Promise.all(Array.from({ length: 8 }, () => claimQuestions(db, 5, HOLD)))).flat();
  expect(taken).toHaveLength(21);
  expect(new Set(taken.map(({ dagId }) => dagId)).size).toBe(21);
});

const failure = { error: { code: "X", message: "no", at: new Date(0).toISOString() }, retryMs: 0 };

it("counts failures and stores the error until a result or new code arrives", async () => {
  const stored = async () =>
    await db.one(adhoc("SELECT failures, error->>'code' AS code FROM dag_timetable WHERE dag_id = 'own'"));
  expect(await storeFailure(db, await take(), failure)).toBe(true);
  const again = await take();
  expect(again.failures).toBe(1);
  await storeFailure(db, again, failure);
  expect(await stored()).toEqual({ failures: 2, code: "X" });
  await storeAnswer(db, await take(), run(AT));
  expect(await stored()).toEqual({ failures: 0, code: null });
  await createDueRuns(db, planner, 10);
  await storeFailure(db, await take(), failure);
  await publish();
  expect(await stored()).toEqual({ failures: 0, code: null });
});

it("takes requests of proven code first, then new code, then failing code, each by due time", async () => {
  await storeAnswer(db, await take(), run(AT));
  await createDueRuns(db, planner, 10);
  for (const dagId of ["new1", "new2", "bad1", "bad2"]) await seedDag(db, dagId, { schedule });
  const order = ["bad1", "bad2", "new1", "own", "new2"];
  await db.rows(
    adhoc(`UPDATE dag_timetable SET ask_at = now() - interval '1 hour' + array_position($1, dag_id) * interval '1 minute',
                                    failures = CASE WHEN dag_id LIKE 'bad%' THEN 3 ELSE 0 END`),
    [order],
  );
  const next = async (worst: 0 | 1 | 2) =>
    (await claimQuestions(db, 1, HOLD, worst)).map(({ dagId, standing }) => `${dagId} ${standing}`)[0];
  expect(await next(0)).toBe("own 0");
  expect(await next(0)).toBeUndefined();
  expect(await nextQuestionIn(db, 1)).toBeLessThan(0);
  expect(await next(1)).toBe("new1 1");
  expect(await next(2)).toBe("new2 1");
  expect(await next(1)).toBeUndefined();
  expect(await nextQuestionIn(db, 1)).toBeGreaterThan(0);
  expect(await next(2)).toBe("bad1 2");
  expect(await next(2)).toBe("bad2 2");
  // New code is a new request.
  await publish();
  expect(await next(2)).toBe("own 1");
});

it("takes a released request immediately, and skips a stale DAG", async () => {
  const question = await take();
  await releaseQuestions(db, [question]);
  expect((await take()).dagId).toBe("own");
  await publish();
  await db.rows(adhoc("UPDATE dag SET is_stale = true"));
  expect(await claimQuestions(db, 10, HOLD)).toEqual([]);
  expect(await nextQuestionIn(db)).toBeNull();
});

it("deletes the request when the schedule changes to another kind", async () => {
  await seedDag(db, "own", { schedule: { kind: "once" } });
  expect(await planned()).not.toBeNull();
  expect(await db.rows(adhoc("SELECT 1 FROM dag_timetable"))).toEqual([]);
});

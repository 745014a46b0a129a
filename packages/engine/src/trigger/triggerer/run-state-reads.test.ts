import { beforeAll, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../../store/database/database.ts";
import { RunStateReads } from "./run-state-reads.ts";

let db: Database;
let ids: string[];

beforeAll(async () => {
  const test = await testDatabase();
  db = test.db;
  await seedDag(db, "child");
  await seedRuns(db, "child", { count: 6 });
  ids = (await db.rows<{ run_id: string }>(adhoc("SELECT run_id FROM dag_run ORDER BY id"))).map(
    (row) => row.run_id,
  );
  return () => test.close();
});

const wait = (
  id: number,
  runId: string | null,
  states: readonly ("running" | "success" | "failed")[] = ["success", "failed"],
) => ({
  id,
  args: { dagId: "child", runId, logicalDate: null, states },
});
const end = (at: number) =>
  db.rows(adhoc("UPDATE dag_run SET state = 'success', ended_at = now() WHERE run_id = $1"), [ids[at]]);
const states = (found: Awaited<ReturnType<RunStateReads["find"]>>) =>
  Object.fromEntries([...found].map(([id, run]) => [id, run?.state ?? null]));

it("of many waits, reads only changed runs, and queries new waits and waits for other states", async () => {
  const looks = new RunStateReads(db, { few: 3, fullMs: 600_000 });
  const waits = ids.slice(0, 4).map((runId, id) => wait(id, runId));
  expect(states(await looks.find(waits))).toEqual({ 0: "queued", 1: "queued", 2: "queued", 3: "queued" });
  expect(states(await looks.find(waits))).toEqual({});
  await end(1);
  expect(states(await looks.find(waits))).toEqual({ 1: "success" });
  // A run may be found again: each wait is reported once and then removed.
  const left = waits.filter(({ id }) => id !== 1);
  const more = [wait(4, ids[4] ?? ""), wait(5, "no_such"), wait(6, ids[5] ?? "", ["running"])];
  expect(states(await looks.find([...left, ...more]))).toEqual({ 4: "queued", 5: null, 6: "queued" });
  await end(0);
  await end(4);
  expect(states(await looks.find([...left, ...more]))).toEqual({ 0: "success", 4: "success", 6: "queued" });
});

it("queries few waits each time, and all of many periodically, so that deleted runs are noticed", async () => {
  const waits = ids.slice(2, 6).map((runId, id) => wait(id, runId));
  const few = new RunStateReads(db, { few: 4, fullMs: 600_000 });
  expect((await few.find(waits)).size).toBe(4);
  expect((await few.find(waits)).size).toBe(4);
  const often = new RunStateReads(db, { few: 0, fullMs: 0 });
  await often.find(waits);
  await db.rows(adhoc("DELETE FROM dag_run WHERE run_id = $1"), [ids[2]]);
  expect(states(await often.find(waits))).toMatchObject({ 0: null });
  const seldom = new RunStateReads(db, { few: 0, fullMs: 600_000 });
  const open = waits.filter(({ id }) => id === 1 || id === 3);
  await seldom.find(open);
  expect((await seldom.find(open)).size).toBe(0);
});

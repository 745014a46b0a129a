/** Races on the rows of deadlines, and the cost of reading them. */
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { deadlinesOfVersion, judgeDeadlines, keepDeadlines, readDueDeadlines } from "./deadlines.ts";
import { claimDeliveries, deliveryDone, deliveryFailed } from "./deliveries.ts";

const HOUR = 3_600_000;
const queuedWithin = (withinMs: number) => ({
  after: "queued" as const,
  withinMs,
  actions: [{ kind: "webhook" as const, to: "https://example.com" }],
});

describe("deadline rows", () => {
  let db: Database;

  beforeEach(async () => {
    const test = await testDatabase();
    db = test.db;
    return () => test.close();
  });

  const run = async (dagId: string, runId = "r") =>
    (
      await db.one<{ id: number }>(
        adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, version_id, triggered_by)
               SELECT dag_id, $2, 'manual', version_id, 'cli' FROM dag WHERE dag_id = $1 RETURNING id`),
        [dagId, runId],
      )
    )?.id ?? 0;
  const move = (id: number, state: string) =>
    db.rows(
      adhoc(`UPDATE dag_run SET state = $2, started_at = coalesce(started_at, now()),
               ended_at = CASE WHEN $2 IN ('success', 'failed') THEN now() END WHERE id = $1`),
      [id, state],
    );
  const clear = (id: number) =>
    db.rows(
      adhoc(`UPDATE dag_run SET state = 'queued', queued_at = now(), started_at = NULL, ended_at = NULL,
               clear_number = clear_number + 1 WHERE id = $1`),
      [id],
    );
  const keep = () => keepDeadlines(db, deadlinesOfVersion, 100);
  const rows = (id: number) =>
    db.rows<{ state: string; due_at: Date; clear_number: number }>(
      adhoc(
        "SELECT state, due_at, clear_number FROM deadline WHERE dag_run_id = $1 ORDER BY task_id, ordinal",
      ),
      [id],
    );
  const notes = async () => (await db.rows(adhoc("SELECT 1 FROM deadline_note"))).length;

  it("get a note when a run with deadlines is created or changes its state, and at no other write", async () => {
    await seedDag(db, "with", { deadlines: [queuedWithin(HOUR)] });
    await seedDag(db, "without");
    const id = await run("with");
    const other = await run("without");
    expect(await notes()).toBe(1);
    for (const each of [id, other]) {
      await move(each, "running");
      await db.rows(adhoc("UPDATE dag_run SET generation = generation + 1, state = state WHERE id = $1"), [
        each,
      ]);
      await move(each, "success");
    }
    expect(await notes()).toBe(3);
    expect(await keep()).toEqual({ taken: 3, missed: 0 });
    expect(await keep()).toEqual({ taken: 0, missed: 0 });
    expect(await rows(id)).toMatchObject([{ state: "met" }]);
    expect(await rows(other)).toEqual([]);
  });

  it("have the same result if notes are processed late", async () => {
    await seedDag(db, "late", { deadlines: [queuedWithin(1)] });
    const id = await run("late");
    await move(id, "running");
    await move(id, "success");
    await db.rows(adhoc("UPDATE dag_run SET queued_at = now() - interval '1 minute' WHERE id = $1"), [id]);
    expect(await keep()).toEqual({ taken: 3, missed: 1 });
    // The run succeeded too late.
    expect(await rows(id)).toMatchObject([{ state: "missed" }]);
    expect(await judgeDeadlines(db, 10)).toEqual({ due: 0, missed: 0 });
  });

  it("ignore the note of a deleted run", async () => {
    await seedDag(db, "gone", { deadlines: [queuedWithin(HOUR)] });
    const id = await run("gone");
    await db.rows(adhoc("DELETE FROM dag_run WHERE id = $1"), [id]);
    expect(await keep()).toEqual({ taken: 1, missed: 0 });
    expect(await notes()).toBe(0);
  });

  it("are created once and missed once by concurrent calls", async () => {
    await seedDag(db, "raced", { deadlines: [queuedWithin(1)] });
    const ids: number[] = [];
    for (let each = 0; each < 20; each++) {
      const id = await run("raced", `r${each}`);
      await move(id, "running");
      ids.push(id);
    }
    const few = () => keepDeadlines(db, deadlinesOfVersion, 5);
    while ((await Promise.all([few(), few(), few()])).some(({ taken }) => taken > 0));
    const judged = await Promise.all([1, 2, 3, 4].map(() => judgeDeadlines(db, 7)));
    let missed = judged.reduce((sum, each) => sum + each.missed, 0);
    for (let last = await judgeDeadlines(db, 7); last.due > 0; last = await judgeDeadlines(db, 7))
      missed += last.missed;
    expect(missed).toBe(20);
    expect((await db.rows(adhoc("SELECT 1 FROM delivery"))).length).toBe(20);
    expect((await db.rows(adhoc("SELECT 1 FROM signal WHERE namespace = 'deadline'"))).length).toBe(20);
    for (const id of ids) expect(await rows(id)).toHaveLength(1);
  });

  it("count again after a clear, and an older note cannot undo that", async () => {
    await seedDag(db, "cleared", { deadlines: [queuedWithin(HOUR)] });
    const id = await run("cleared");
    await move(id, "running");
    await move(id, "success");
    await keep();
    const [before] = await rows(id);
    expect(before).toMatchObject({ state: "met", clear_number: 0 });
    await clear(id);
    await keep();
    const [after] = await rows(id);
    expect(after).toMatchObject({ state: "pending", clear_number: 1 });
    expect(after?.due_at.getTime()).toBeGreaterThan(before?.due_at.getTime() ?? 0);
    // A note from before the clear that is processed after it.
    await db.rows(adhoc("INSERT INTO deadline_note (dag_run_id) VALUES ($1)"), [id]);
    await keep();
    expect(await rows(id)).toEqual([after]);
  });

  it("report a miss by logical date once, even if the run is cleared", async () => {
    await seedDag(db, "dated", { deadlines: [{ ...queuedWithin(1), after: "logicalDate" }] });
    const id = await run("dated");
    await db.rows(adhoc("UPDATE dag_run SET logical_date = '2020-01-01Z' WHERE id = $1"), [id]);
    await keep();
    expect(await judgeDeadlines(db, 10)).toEqual({ due: 1, missed: 1 });
    await clear(id);
    await keep();
    expect(await judgeDeadlines(db, 10)).toEqual({ due: 0, missed: 0 });
    expect(await rows(id)).toMatchObject([{ state: "missed" }]);
  });

  it("are not created by logical date for a backfill run", async () => {
    await seedDag(db, "filled", {
      deadlines: [{ ...queuedWithin(1), after: "logicalDate" }, queuedWithin(HOUR)],
    });
    const id = await run("filled");
    await db.rows(
      adhoc("UPDATE dag_run SET logical_date = '2020-01-01Z', run_type = 'backfill' WHERE id = $1"),
      [id],
    );
    await keep();
    expect(await rows(id)).toHaveLength(1);
  });

  it("store a failure of the latest attempt only, but a success of any attempt", async () => {
    await seedDag(db, "told", { deadlines: [queuedWithin(1)] });
    const id = await run("told");
    await keep();
    await judgeDeadlines(db, 10);
    const take = async () => (await claimDeliveries(db, { limit: 5, leaseMs: 0 })).own[0]!;
    const first = await take();
    const second = await take();
    expect([first.attempts, second.attempts]).toEqual([1, 2]);
    expect(await deliveryFailed(db, first, "too late to say")).toBe(false);
    const stored = async () =>
      db.one<{ state: string; error: string | null }>(adhoc("SELECT state, error FROM delivery"));
    expect(await stored()).toEqual({ state: "pending", error: null });
    await deliveryDone(db, first.id);
    await deliveryFailed(db, second, "it was the second time");
    expect(await stored()).toEqual({ state: "done", error: null });
    expect(await rows(id)).toHaveLength(1);
  });
});

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

describe("a database with 50,000 deadlines and deliveries", () => {
  let db: Database;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1 }));
    await seedDag(db, "d");
    await db.rows(
      adhoc(`WITH made AS (
               INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by, started_at, ended_at)
               SELECT 'd', i::text, 'manual', 'success', version_id, 'cli', now() - i * interval '1 minute', now()
               FROM dag, generate_series(1, 50000) AS i RETURNING id, run_id
             ), due AS (
               INSERT INTO deadline (dag_run_id, task_id, ordinal, counts_from, actions, due_at, clear_number, state)
               SELECT id, '', 0, 'queued', '[]', now() + run_id::int * interval '1 minute', 0,
                 CASE WHEN run_id::int % 2 = 0 THEN 'pending' ELSE 'missed' END FROM made RETURNING id, dag_run_id
             )
             INSERT INTO delivery (dag_run_id, event, deadline_id, place, action, report, state, next_try_at)
             SELECT dag_run_id, 'deadline', id, 0, '{"kind":"webhook","to":"x"}', '{}',
               CASE WHEN id % 2 = 0 THEN 'pending' ELSE 'done' END, now() + interval '1 hour' FROM due`),
    );
    for (const table of ["dag_run", "deadline", "delivery"]) await db.rows(adhoc(`ANALYZE ${table}`));
    await readDueDeadlines(db);
    await judgeDeadlines(db, 100);
    await claimDeliveries(db, { limit: 8, leaseMs: 1 });
    const average = { after: { averageOf: 10, atLeast: 1 }, withinMs: HOUR, actions: [] };
    await db.rows(adhoc("INSERT INTO deadline_note (dag_run_id) SELECT max(id) FROM dag_run"));
    await keepDeadlines(
      db,
      async () => [
        { taskId: "", deadlines: [average] },
        { taskId: "t", deadlines: [average] },
      ],
      10,
    );
  }, 60_000);

  it.each([
    ["deadline-look", ""],
    ["deadline-lock-due", "(100)"],
    ["delivery-take", "(8, 1000)"],
    ["deadline-last-runs", "('d', 1, 10)"],
    ["deadline-last-tasks", "('d', 1, 10, 't')"],
    ["deadline-lock-of-runs", "('{1,2,3}')"],
  ])("%s uses an index", async (name, values) => {
    for (const mode of ["force_custom_plan", "force_generic_plan"]) {
      await db.rows(adhoc(`SET plan_cache_mode = ${mode}`));
      const [row] = await db.rows<{ "QUERY PLAN": [{ Plan: Plan }] }>(
        adhoc(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"${values}`),
      );
      const plan = row?.["QUERY PLAN"][0].Plan;
      if (!plan) throw new Error(`no plan of ${name}`);
      const scans = nodes(plan).filter(
        (node) =>
          node["Node Type"] === "Seq Scan" &&
          ["dag_run", "deadline", "delivery"].includes(node["Relation Name"] ?? ""),
      );
      expect(scans, `${mode}: ${JSON.stringify(plan)}`).toEqual([]);
    }
  });
});

function nodes(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

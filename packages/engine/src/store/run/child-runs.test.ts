import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { makeTriggeredRun } from "../../run/dispatch/triggered-runs.ts";
import { adhoc, type Database } from "../database/database.ts";
import { cancelRun } from "../edit/end-run.ts";
import { abandonedRuns } from "./child-runs.ts";

let db: Database;

beforeAll(async () => {
  const test = await testDatabase();
  db = test.db;
  await seedDag(db, "parent");
  await seedDag(db, "child");
  return () => test.close();
});

const sql = (text: string, values: unknown[] = []) => db.rows<{ id: number }>(adhoc(text), values);

/** A run of "parent" with an active task. */
async function underWay(state = "running") {
  const [runId = 0] = await seedRuns(db, "parent", { state: "running" });
  const attempt = randomUUID();
  await sql(
    `INSERT INTO task_instance (dag_run_id, task_id, map_index, state, try_number, attempt, pool, pool_slots, queue,
                                priority_weight, operator)
     VALUES ($1, 't', -1, $2, 2, $3, 'default_pool', 1, 'default', 1, 'dag')`,
    [runId, state, attempt],
  );
  await sql("UPDATE pool SET occupied = occupied + 1 WHERE name = 'default_pool'");
  return { runId, taskId: "t", mapIndex: -1, tryNumber: 2, attempt };
}

const make = (by: Awaited<ReturnType<typeof underWay>>, runId: string) =>
  db.transaction((tx) =>
    makeTriggeredRun(tx, { dagId: "child", runId, conf: {}, logicalDate: null, child: true }, by),
  );
const abandoned = async () => (await abandonedRuns(db, 100)).map(({ run_id }) => run_id);

describe("the run of a sub-DAG", () => {
  it("is created once by concurrent calls, and only by the current attempt", async () => {
    const by = await underWay();
    const made = await Promise.all([1, 2, 3].map(() => make(by, "once")));
    expect(made.map(({ created }) => created).sort()).toEqual([false, false, true]);
    expect(await sql("SELECT id FROM dag_run WHERE run_id = 'once'")).toHaveLength(1);
    await expect(make({ ...by, attempt: randomUUID() }, "late")).rejects.toMatchObject({
      code: "TASK_ATTEMPT_SUPERSEDED",
    });
    await sql("UPDATE task_instance SET state = 'restarting' WHERE attempt = $1", [by.attempt]);
    await expect(make(by, "late")).rejects.toMatchObject({ code: "TASK_ATTEMPT_SUPERSEDED" });
    expect(await sql("SELECT id FROM dag_run WHERE run_id = 'late'")).toEqual([]);
  });

  it("is not created when an edit ends its attempt concurrently, or is found as abandoned afterwards", async () => {
    for (let round = 0; round < 10; round++) {
      const by = await underWay();
      const [outcome, cancel] = await Promise.allSettled([
        make(by, `race-${round}`),
        db.transaction((tx) => cancelRun(tx, by.runId, "cancelled manually")),
      ]);
      expect(cancel.status).toBe("fulfilled");
      expect(await abandoned()).toEqual(
        outcome.status === "fulfilled" ? expect.arrayContaining([`race-${round}`]) : expect.anything(),
      );
      await sql("UPDATE dag_run SET state = 'failed' WHERE run_id = $1", [`race-${round}`]);
    }
  });

  it.each([
    ["scheduled", false],
    ["queued", false],
    ["running", false],
    ["deferred", false],
    ["up_for_reschedule", false],
    ["pending", true],
    ["restarting", true],
    ["up_for_retry", true],
    ["success", true],
    ["failed", true],
    ["skipped", true],
    ["removed", true],
  ])("has a task in state %s: abandoned: %s", async (state, isAbandoned) => {
    const by = await underWay();
    await make(by, `of-${state}`);
    await sql("UPDATE task_instance SET state = $2 WHERE attempt = $1", [by.attempt, state]);
    expect((await abandoned()).includes(`of-${state}`)).toBe(isAbandoned);
    // Another try of the same task does not count.
    await sql("UPDATE task_instance SET state = 'deferred', try_number = 3 WHERE attempt = $1", [by.attempt]);
    expect(await abandoned()).toContain(`of-${state}`);
    await sql("UPDATE dag_run SET state = 'failed' WHERE run_id = $1", [`of-${state}`]);
    expect(await abandoned()).not.toContain(`of-${state}`);
  });

  it("is abandoned when its parent is deleted, and is found without reading history", async () => {
    const by = await underWay();
    await make(by, "left");
    await sql("DELETE FROM dag_run WHERE id = $1", [by.runId]);
    expect(await abandoned()).toContain("left");
    await sql("SET enable_seqscan = off");
    const plan = await db.rows<{ "QUERY PLAN": string }>(
      adhoc(
        "EXPLAIN SELECT id FROM dag_run WHERE parent_try IS NOT NULL AND state IN ('queued', 'running') ORDER BY id LIMIT 9",
      ),
    );
    expect(plan.map((line) => line["QUERY PLAN"]).join("\n")).toContain("dag_run_sub_dag");
  });
});

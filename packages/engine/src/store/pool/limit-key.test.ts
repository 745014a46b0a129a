import { expect, it } from "vitest";
import { taskManifest } from "../../../test/reference/manifests.ts";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { clearRun } from "../../../test/support/run-edits.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc } from "../database/database.ts";
import { limitKeyOf, limitNames } from "./limit-key.ts";

it("names the limits that count an instance, and splits into them", () => {
  const keys = (perDag: number | null, all?: number) =>
    limitKeyOf(
      { dagId: "d", ...(all !== undefined && { maxActiveTasksPerDag: all }) },
      { taskId: "t", maxActivePerDag: perDag },
    );
  expect(keys(null)).toBeNull();
  expect(limitNames(keys(null))).toEqual([]);
  expect(limitNames(keys(2))).toEqual(["@d/t"]);
  expect(limitNames(keys(null, 3))).toEqual(["@@d"]);
  expect(limitNames(keys(2, 3))).toEqual(["@d/t", "@@d"]);
});

it("stays the same when a run moves to another version", async () => {
  const { db } = await testDatabase();
  const tasks = [taskManifest("free"), taskManifest("few", { maxActivePerDag: 2 })];
  await seedDag(db, "d", { tasks });
  const [run = 0] = await seedRuns(db, "d", { state: "success" });
  await db.rows(
    adhoc(`INSERT INTO task_instance (dag_run_id, task_id, state, try_number, pool, pool_slots, queue, priority_weight, operator)
           SELECT $1, t, 'success', 1, 'default_pool', 1, 'default', 1, 'task' FROM unnest('{free,few}'::text[]) AS t`),
    [run],
  );
  for (const limit of [undefined, 5]) {
    const dag = { dagId: "d", ...(limit !== undefined && { maxActiveTasksPerDag: limit }) };
    await seedDag(db, "d", { tasks, ...dag });
    await db.rows(adhoc("UPDATE task_instance SET state = 'success'"));
    await db.transaction((tx) => clearRun(tx, run, { latestVersion: true }));
    const sql = "SELECT task_id, limit_key FROM task_instance ORDER BY task_id";
    expect(await db.rows(adhoc(sql))).toEqual([
      { task_id: "few", limit_key: limitKeyOf(dag, tasks[1]!) },
      { task_id: "free", limit_key: limitKeyOf(dag, tasks[0]!) },
    ]);
  }
  const counters = await db.rows(adhoc("SELECT name, slots FROM pool WHERE name LIKE '@%' ORDER BY name"));
  expect(counters).toEqual([
    { name: "@@d", slots: 5 },
    { name: "@d/few", slots: 2 },
  ]);
});

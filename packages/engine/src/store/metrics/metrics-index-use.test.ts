/** A scrape costs the same, however long the history. The production statements, by name, on the only connection. */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { nodes, plansOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database } from "../database/database.ts";
import { activeInstances, activeRuns, delays } from "./active-work.ts";
import { componentCounts, triggerCounts, unreadSignalAge } from "./services.ts";

/** What grows with the history. The rest is small: DAGs, services, waiting triggers, listeners. */
const HISTORY = ["dag_run", "task_instance", "signal", "job"];
/** Without finished runs and ended services, or one row per call. */
const INDEXES = ["dag_run_queued", "dag_run_running", "job_running", "signal_position", "task_instance_pkey"];

describe("a database with 40,000 finished runs", () => {
  let db: Database;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1 }));
    const jobId = await seedJob(db);
    for (let i = 0; i < 20; i++) {
      await seedDag(db, `dag${i}`);
      await seedRuns(db, `dag${i}`, { count: 2_000, state: "success" });
      await seedRuns(db, `dag${i}`, { count: 20, state: "running", ownerJob: jobId });
      await seedRuns(db, `dag${i}`, { count: 20 });
    }
    for (const text of [
      `INSERT INTO task_instance (dag_run_id, task_id, state, pool, pool_slots, queue, priority_weight, operator)
       SELECT id, 't0', CASE state WHEN 'running' THEN 'running' ELSE 'success' END, 'default_pool', 1, 'default', 1, 'task' FROM dag_run`,
      `INSERT INTO job (kind, state, hostname, pid, version, lease_until, ended_at)
       SELECT 'worker', 'stopped', 'h', 1, '0', now() - interval '1 day', now() - interval '1 day' FROM generate_series(1, 20000)`,
      `INSERT INTO signal (namespace, key, sender) SELECT 'n', 'k', 's' FROM generate_series(1, 20000)`,
      `INSERT INTO signal_listener (name, tx, signal_id, holder, lease_until)
       SELECT 'l' || i, s.tx, s.id, 'h', now() + interval '1 hour' FROM generate_series(1, 100) AS i, (SELECT max(tx) AS tx, max(id) - 5 AS id FROM signal) AS s`,
      "ANALYZE",
    ])
      await db.rows(adhoc(text));
    await activeRuns(db);
    await activeInstances(db);
    await delays(db);
    await componentCounts(db);
    await triggerCounts(db);
    await unreadSignalAge(db);
  });

  it.each([
    ["metrics-active-runs", ""],
    ["metrics-active-instances", "('{running}')"],
    ["metrics-delays", ""],
    ["metrics-components", "('{worker}')"],
    ["metrics-triggers", ""],
    ["metrics-unread-signals", ""],
  ])("%s reads no history", async (name, values) => {
    for (const [mode, plan] of await plansOf(db, name, values)) {
      const reads = nodes(plan).filter(({ "Node Type": type }) => type.includes("Scan"));
      expect(reads.length, mode).toBeGreaterThan(0);
      // A bitmap heap scan reads what its bitmap index scan found, which has no table.
      const others = reads.filter(
        ({ "Index Name": index, "Node Type": type, "Relation Name": table }) =>
          type !== "Bitmap Heap Scan" &&
          (table === undefined ? type.startsWith("Bitmap") : HISTORY.includes(table)) &&
          !INDEXES.includes(index ?? ""),
      );
      expect(others, mode).toEqual([]);
      // Its index has the whole history: it is entered with the id of a run.
      const instances = reads.filter((read) => read["Relation Name"] === "task_instance");
      for (const { "Index Cond": cond } of instances) expect(cond, mode).toMatch(/^\(dag_run_id = /);
    }
  });
});

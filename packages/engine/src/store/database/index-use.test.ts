/**
 * The queries of every heartbeat and every end of a run cost the same, however long the history. Each statement is
 * executed once, on the only connection, and its plan is then read by its name: it is the production statement, not a
 * copy.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { NO_TASKS } from "../../../test/support/no-tasks.ts";
import { nodes, type Plan, plansOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { planner } from "../../model/calendar/planner.ts";
import { deleteDag } from "../dag/dag-settings.ts";
import { readLastRuns } from "../list/last-runs.ts";
import { createDueRuns, nextDueIn, planContinuous } from "../plan/due-runs.ts";
import { cleanHistory } from "../run/history.ts";
import { nextQueuedAt, ownedRuns, startQueuedRuns, takeOverRuns } from "../run/run-claim.ts";
import { countEnded, countedRuns } from "../run/run-count.ts";
import { loadInstances } from "../run/run-load.ts";
import { makeWay } from "../run/run-slots.ts";
import { readSubmitted, reserveRuns, startSubmitted, takeOverSubmitted } from "../run/submitted-runs.ts";
import { adhoc, type Database } from "./database.ts";

describe("a database with 100,000 finished runs", () => {
  let db: Database;
  let jobId: number;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1 }));
    jobId = await seedJob(db);
    for (let i = 0; i < 20; i++) await seedDag(db, `dag${i}`);
    await seedDag(db, "loop", { schedule: { kind: "continuous" } });
    for (let i = 0; i < 20; i++) await seedRuns(db, `dag${i}`, { count: 5_000, state: "success" });
    await seedRuns(db, "dag0", { count: 20, state: "running", ownerJob: jobId });
    await seedRuns(db, "dag1", { count: 300 });
    await db.rows(
      adhoc(`INSERT INTO task_instance (dag_run_id, task_id, state, pool, pool_slots, queue, priority_weight, operator)
             SELECT id, 't0', 'success', 'default_pool', 1, 'default', 1, 'task' FROM dag_run`),
    );
    for (const table of ["job", "dag", "dag_version", "dag_run", "task_instance"])
      await db.rows(adhoc(`ANALYZE ${table}`));
    await takeOverRuns(db, jobId, 0);
    await ownedRuns(db, jobId);
    await nextQueuedAt(db);
    await nextDueIn(db);
    await createDueRuns(db, planner, 10);
    await loadInstances(db, [1]);
    await readLastRuns(db, ["dag0"]);
    await countedRuns(db, jobId);
    await countEnded(db, [1]);
    await reserveRuns(db, jobId, [1]);
    await readSubmitted(db, [1]);
    await takeOverSubmitted(db, { jobId, limit: 1, fromAny: true }, [1]);
    const start = { jobId, limit: 1, columns: async () => NO_TASKS };
    await startSubmitted(db, start, [
      { dagId: "dag0", runId: "a", id: 1, logicalDate: null, interval: null, conf: {} },
    ]);
    await startQueuedRuns(db, { jobId, limit: 1, columns: async () => NO_TASKS });
    await makeWay(db, { jobId, columns: async () => NO_TASKS });
    await db.rows(adhoc("UPDATE dag SET next_run_after = NULL WHERE dag_id = 'loop'"));
    await db.rows(adhoc("DELETE FROM dag_run WHERE dag_id = 'loop'"));
    expect(await planContinuous(db)).toBe(1);
    expect(await db.transaction((tx) => deleteDag(tx, "dag1"))).toBe("active");
    await seedRuns(db, "dag2", { state: "success", ageMs: 20 * 86_400_000 });
    await cleanHistory(db, { olderThanMs: 10 * 86_400_000, dryRun: false, batch: 10 });
  }, 120_000);

  it.each([
    ["claim-take-over", "(1, 64, 20000, NULL)"],
    ["claim-take-over", "(1, 64, 20000, '{dag0,dag1}')"],
    ["claim-generations", "(1)"],
    ["claim-next-queued", "(NULL)"],
    ["claim-next-queued", "('{dag0,dag1}')"],
    ["claim-lock-dags", "(64, NULL, NULL)"],
    ["claim-lock-dags", "(64, '{dag0,dag1}', 1)"],
    ["claim-start-runs", "(1, '{dag1,dag2}', 64, 20000, 8, NULL, 7, 3, 2)"],
    ["claim-start-runs", "(1, '{dag1,dag2}', 64, 20000, 8, 1, 7, 3, 2)"],
    ["count-owned", "(1)"],
    ["submit-room", "('{dag0,dag1}')"],
    ["submit-take-over", "(1, 64, 20000, '{1,2,3}', true)"],
    ["submit-lock-queued", "(1, '{1,2,3}')"],
    ["submit-reserve", "(1, '{1,2,3}')"],
    ["submit-read", "('{1,2,3}')"],
    ["submit-left-queue", "('{1,2,3}')"],
    ["count-ended", "('{1,2,3}')"],
    ["places-lock-dags", "(16, NULL)"],
    ["places-lock-dags", "(16, '{dag0,dag1}')"],
    ["due-lock", "(200, NULL)"],
    ["due-lock", "(200, '{dag0,dag1}')"],
    ["due-next", "(NULL)"],
    ["due-next", "('{dag0,dag1}')"],
    ["due-lock-idle", "(NULL)"],
    ["due-lock-idle", "('{dag0,loop}')"],
    ["due-continuous", "('{loop}')"],
    ["dag-find-unfinished", "('dag1')"],
    ["load-instances", "('{1,2,3}')"],
    ["clean-choose-runs", "(864000000, 1000, NULL)"],
    ["clean-size-runs", "('{1,2,3}')"],
    ["clean-remove-runs", "(864000000, '{1,2,3}')"],
    ["clean-choose-jobs", "(864000000, 1000)"],
  ])("%s %s scans neither a whole table nor the history of a DAG", async (name, values) => {
    for (const [mode, plan] of await plansOf(db, name, values))
      expect(nodes(plan).filter(isLong), `${mode}: ${JSON.stringify(plan)}`).toEqual([]);
  });

  it.each([
    ["runs to start without reading the queue", "claim-lock-dags", "(64, NULL, NULL)"],
    ["the latest runs without reading history", "last-runs", "('{dag0,dag2}')"],
  ])("finds %s", async (_, name, values) => {
    await db.rows(adhoc("SET plan_cache_mode = force_generic_plan"));
    const rows = await db.rows<{ "QUERY PLAN": [{ Plan: Plan }] }>(
      adhoc(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE "${name}"${values}`),
    );
    const plan = rows[0]?.["QUERY PLAN"][0].Plan;
    if (!plan) throw new Error("no plan");
    const read = nodes(plan)
      .filter((node) => node["Relation Name"] === "dag_run")
      .map((node) => (node as unknown as Record<string, number>)["Actual Rows"] ?? 0);
    expect(read.length).toBeGreaterThan(0);
    expect(Math.max(...read)).toBeLessThan(50);
  });
});

/** Indexes of dag_run that do not contain its history. */
const SHORT_CUTS = new Set([
  "dag_run_queued",
  "dag_run_queued_of_dag",
  "dag_run_backlog",
  "dag_run_running",
  "dag_run_owner",
  "dag_run_ended",
]);

function isLong(node: Plan): boolean {
  const { "Node Type": type, "Relation Name": table, "Index Name": index, "Index Cond": condition } = node;
  // The next run by date: LIMIT 1 stops the scan.
  if (index === "dag_run_logical_date" && condition?.includes("logical_date >")) return false;
  // The last success: likewise.
  if (index === "dag_run_succeeded" && condition?.includes("ended_at >")) return false;
  if (type === "Seq Scan") return table === "dag_run" || table === "task_instance";
  if (index === "dag_run_pkey" || index === "task_instance_pkey") return condition === undefined;
  return (index?.startsWith("dag_run") ?? false) && !SHORT_CUTS.has(index ?? "");
}

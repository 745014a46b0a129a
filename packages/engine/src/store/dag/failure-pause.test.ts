/** Pausing after failures: which runs count, and that a DAG is paused once by concurrent calls. */
import { beforeEach, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { planner } from "../../model/calendar/planner.ts";
import { adhoc, type Database } from "../database/database.ts";
import { createDueRuns } from "../plan/due-runs.ts";
import { setPaused } from "./dag-settings.ts";
import { pauseAfterFailures } from "./failure-pause.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  await publish(3);
  return () => test.close();
});

const HOUR = 3_600_000;

async function publish(limit: number): Promise<void> {
  await seedDag(db, "sales", {
    schedule: { kind: "interval", everyMs: HOUR, style: "trigger" },
    pauseAfterFailures: limit,
  });
}

let made = 0;

/** Adds ended runs, each with a later logical date. */
async function ended(states: readonly string[], type = "scheduled"): Promise<void> {
  for (const state of states) {
    const end = state === "running" ? null : new Date();
    await db.rows(
      adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, version_id, triggered_by, ended_at)
             SELECT dag_id, $1, $2, $3, now() - interval '1 day' + $4 * interval '1 minute', version_id, 'timetable', $5
             FROM dag WHERE dag_id = 'sales'`),
      [`r${++made}`, type, state, made, end],
    );
  }
}

async function dag(): Promise<{ is_paused: boolean; pause_reason: string | null }> {
  const row = await db.one<{ is_paused: boolean; pause_reason: string | null }>(
    adhoc("SELECT is_paused, pause_reason FROM dag WHERE dag_id = 'sales'"),
  );
  if (!row) throw new Error("no DAG");
  return row;
}

const audits = () =>
  db.rows<{ actor: string; action: string; details: unknown }>(
    adhoc("SELECT actor, action, details FROM audit_event WHERE dag_id = 'sales'"),
  );
const signals = () =>
  db.rows<{ value: unknown }>(adhoc("SELECT value FROM signal WHERE namespace = 'action' AND key = 'sales'"));

it("pauses at the configured number of failures, with a reason, an audit event and a signal", async () => {
  await ended(["success", "failed", "failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(false);
  await ended(["failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(true);
  expect(await dag()).toEqual({
    is_paused: true,
    pause_reason: `the last 3 scheduled runs have failed, up to r${made} (pauseAfterFailures)`,
  });
  expect(await audits()).toEqual([
    { actor: "engine", action: "pause_dag", details: { reason: "pauseAfterFailures" } },
  ]);
  expect(await signals()).toEqual([{ value: { action: "pause_dag", by: "engine" } }]);
});

it("ignores manual runs, backfill runs and runs under way", async () => {
  await ended(["failed", "failed"]);
  await ended(["failed"], "manual");
  await ended(["failed"], "backfill");
  await ended(["running"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(false);
  await ended(["success"], "manual");
  await ended(["failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(true);
});

it("restarts the count when the DAG is unpaused, and clears the reason", async () => {
  await ended(["failed", "failed", "failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(true);
  await db.transaction((tx) => setPaused(tx, ["sales"], false));
  expect(await dag()).toEqual({ is_paused: false, pause_reason: null });
  expect(await pauseAfterFailures(db, "sales")).toBe(false);
  await ended(["failed", "failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(false);
  await ended(["failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(true);
});

it("pauses once when called concurrently", async () => {
  await ended(["failed", "failed", "failed"]);
  const all = await Promise.all(Array.from({ length: 6 }, () => pauseAfterFailures(db, "sales")));
  expect(all.filter(Boolean)).toHaveLength(1);
  expect(await audits()).toHaveLength(1);
  expect(await signals()).toHaveLength(1);
});

it("pauses before the next run is created if the check after the failure was lost in a crash", async () => {
  await ended(["failed", "failed", "failed"]);
  await seedDag(db, "other", { schedule: { kind: "interval", everyMs: HOUR, style: "trigger" } });
  const before = await db.rows(adhoc("SELECT 1 FROM dag_run"));
  expect(await createDueRuns(db, planner, 10)).toMatchObject({ dags: 2, created: 1, paused: ["sales"] });
  expect(await db.rows(adhoc("SELECT 1 FROM dag_run"))).toHaveLength(before.length + 1);
  expect((await dag()).is_paused).toBe(true);
  expect(await audits()).toHaveLength(1);
  expect(await createDueRuns(db, planner, 10)).toMatchObject({ dags: 0, paused: [] });
});

it("writes one audit event for several DAGs, and one signal per DAG", async () => {
  await ended(["failed", "failed", "failed"]);
  await seedDag(db, "other", {
    schedule: { kind: "interval", everyMs: HOUR, style: "trigger" },
    pauseAfterFailures: 1,
  });
  await db.rows(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, version_id, triggered_by, ended_at)
           SELECT dag_id, 'x', 'scheduled', 'failed', '2020-01-01', version_id, 'timetable', now() FROM dag WHERE dag_id = 'other'`),
  );
  const { paused } = await createDueRuns(db, planner, 10);
  expect([...paused].sort()).toEqual(["other", "sales"]);
  expect(await db.rows(adhoc("SELECT 1 FROM signal WHERE namespace = 'action'"))).toHaveLength(2);
  expect(await db.rows(adhoc("SELECT 1 FROM audit_event"))).toHaveLength(1);
});

it("uses the limit of the newest version, and ignores a DAG without a limit", async () => {
  await ended(["failed"]);
  expect(await pauseAfterFailures(db, "sales")).toBe(false);
  await publish(1);
  expect(await pauseAfterFailures(db, "sales")).toBe(true);
  await seedDag(db, "plain");
  expect(await pauseAfterFailures(db, "plain")).toBe(false);
  expect(await pauseAfterFailures(db, "unknown")).toBe(false);
});

it("reads a bounded number of runs, however many manual runs the DAG has", async () => {
  await ended(["failed", "failed", "failed"]);
  const { db: single, close } = await testDatabase({ max: 1 });
  await seedDag(single, "sales", {
    schedule: { kind: "interval", everyMs: HOUR, style: "trigger" },
    pauseAfterFailures: 3,
  });
  await single.rows(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, version_id, triggered_by, ended_at)
           SELECT dag_id, 'r' || i, CASE WHEN i % 3 = 0 THEN 'scheduled' ELSE 'manual' END, 'success',
                  now() - i * interval '1 minute', version_id, 'cli', now()
           FROM dag, generate_series(1, 20000) AS i`),
  );
  await single.rows(adhoc("ANALYZE dag_run"));
  expect(await pauseAfterFailures(single, "sales")).toBe(false);
  for (const mode of ["force_custom_plan", "force_generic_plan"]) {
    await single.rows(adhoc(`SET plan_cache_mode = ${mode}`));
    const rows = await single.rows<{ "QUERY PLAN": unknown }>(
      adhoc(`EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE "failure-pause-ended"('{sales}', '{3}')`),
    );
    const text = JSON.stringify(rows);
    expect(text).toContain("dag_run_logical_date");
    const read = [...text.matchAll(/"Actual Rows": ?([\d.]+)/g)].map(([, n]) => Number(n));
    expect(Math.max(...read)).toBeLessThanOrEqual(503);
  }
  await close();
});

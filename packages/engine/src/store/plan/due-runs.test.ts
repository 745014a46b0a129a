import { beforeEach, describe, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { interleaved } from "../../../test/support/interleaved.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { planner } from "../../model/calendar/planner.ts";
import { jitterOf } from "../../model/index.ts";
import { setPaused } from "../dag/dag-settings.ts";
import { adhoc, type Database } from "../database/database.ts";
import { createDueRuns, nextDueIn, planContinuous } from "./due-runs.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

const HOUR = 3_600_000;

it("queues at most as many scheduled runs as may be active, and keeps the backlog in the plan", async () => {
  const start = new Date(Date.now() - 100 * HOUR).toISOString();
  const schedule = { kind: "interval", everyMs: HOUR, style: "trigger" } as const;
  await seedDag(db, "behind", { schedule, start, catchup: true, maxActiveRuns: 3 });
  await seedDag(db, "none", { schedule, start, catchup: true, maxActiveRuns: 0 });
  await createAll();
  expect(await queued("behind")).toBe(3);
  expect(await queued("none")).toBe(1);
  expect(await nextDueIn(db)).toBeNull();

  await db.rows(
    adhoc(`UPDATE dag_run SET state = 'running' WHERE id = (
             SELECT id FROM dag_run WHERE dag_id = 'behind' ORDER BY run_after LIMIT 1)`),
  );
  expect(await nextDueIn(db)).toBeLessThan(0);
  await createAll();
  expect(await queued("behind")).toBe(3);
  const rows = await db.rows<{ logical_date: Date }>(
    adhoc("SELECT logical_date FROM dag_run WHERE dag_id = 'behind' ORDER BY logical_date"),
  );
  const dates = rows.map((row) => row.logical_date.getTime());
  expect(dates.map((date) => date - (dates[0] ?? 0))).toEqual([0, HOUR, 2 * HOUR, 3 * HOUR]);
});

describe("a plan that is five hours overdue", () => {
  const hourly = { kind: "interval", everyMs: HOUR, style: "trigger" } as const;
  const before = (hours: number) => Math.floor(Date.now() / HOUR) * HOUR - hours * HOUR;
  const dates = async (dagId: string) =>
    (
      await db.rows<{ logical_date: Date }>(
        adhoc("SELECT logical_date FROM dag_run WHERE dag_id = $1 ORDER BY logical_date"),
        [dagId],
      )
    ).map((row) => row.logical_date.getTime());
  const overdue = () =>
    db.rows(
      adhoc(`UPDATE dag SET next_run_after = p.at + (d.next_run_after - d.next_logical_date), next_logical_date = p.at,
                            next_interval_start = p.at, next_interval_end = p.at + (d.next_interval_end - d.next_interval_start)
             FROM dag d, (SELECT to_timestamp($1::float8 / 1000) AS at) AS p WHERE d.dag_id = dag.dag_id`),
      [before(5)],
    );

  it("creates only the newest run without catchup, and all runs with catchup", async () => {
    const start = new Date(before(100)).toISOString();
    await seedDag(db, "newest", { schedule: hourly });
    await seedDag(db, "period", { schedule: { ...hourly, style: "interval" } });
    await seedDag(db, "ended", { schedule: hourly, start, end: new Date(before(2)).toISOString() });
    await seedDag(db, "all", { schedule: hourly, start, catchup: true, maxActiveRuns: 100 });
    // The window of "ended" has closed, so it has no next run.
    await db.rows(
      adhoc(
        "UPDATE dag SET next_run_after = now(), next_logical_date = now(), next_interval_start = now(), next_interval_end = now() WHERE dag_id = 'ended'",
      ),
    );
    await overdue();
    await createAll();
    expect(await dates("newest")).toEqual([before(0)]);
    expect(await dates("period")).toEqual([before(1)]);
    expect(await dates("ended")).toEqual([before(2)]);
    expect(await dates("all")).toEqual([5, 4, 3, 2, 1, 0].map(before));
  });

  it("waits for the newest run while jitter delays it", async () => {
    const jitterMs = 2 * 60_000;
    await seedDag(db, "spread", { schedule: hourly, jitterMs });
    await overdue();
    await createAll();
    const at = before(0) + jitterOf("spread", before(0), jitterMs);
    expect(await dates("spread")).toEqual(at <= Date.now() ? [before(0)] : []);
    if (at > Date.now())
      expect(Math.abs(((await nextDueIn(db)) ?? 0) - (at - Date.now()))).toBeLessThan(1_000);
  });
});

it("ignores manually queued runs when it limits the backlog", async () => {
  await seedDag(db, "busy", {
    schedule: { kind: "interval", everyMs: HOUR, style: "trigger" },
    start: new Date(Date.now() - 3 * HOUR).toISOString(),
    catchup: true,
    maxActiveRuns: 1,
  });
  await seedRuns(db, "busy", { count: 20 });
  await createAll();
  expect(await queued("busy")).toBe(1);
});

it("plans a continuous DAG when it has no unfinished run", async () => {
  await seedDag(db, "loop", { schedule: { kind: "continuous" }, maxActiveRuns: 1 });
  await seedDag(db, "other");
  await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
  for (const state of ["queued", "running"] as const) {
    const [id] = await seedRuns(db, "loop", { state });
    expect(await planContinuous(db)).toBe(0);
    await db.rows(adhoc("UPDATE dag_run SET state = 'success', ended_at = now() WHERE id = $1"), [id]);
  }
  expect(await planContinuous(db)).toBe(1);
  expect(await planContinuous(db)).toBe(0);
  await createAll();
  expect(await queued("loop")).toBe(1);

  await db.rows(adhoc("UPDATE dag_run SET state = 'success', ended_at = now()"));
  await seedDag(db, "loop", { schedule: { kind: "none" } });
  expect(await planContinuous(db)).toBe(0);
});

describe("a continuous DAG that fails", () => {
  beforeEach(async () => {
    await seedDag(db, "loop", { schedule: { kind: "continuous" }, maxActiveRuns: 1 });
    await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
  });

  /** A run that has just ended in this state: scheduled, or manual without a date. */
  const ended = (state: "success" | "failed", isDated = true) =>
    db.rows(
      adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, version_id, triggered_by, started_at, ended_at)
             SELECT dag_id, gen_random_uuid(), CASE WHEN $2 THEN 'scheduled' ELSE 'manual' END, $1,
                    CASE WHEN $2 THEN clock_timestamp() END, version_id, 'cli', now(), clock_timestamp()
             FROM dag WHERE dag_id = 'loop'`),
      [state, isDated],
    );
  /** Seconds from the last end to the next run. */
  const delay = async () => {
    await planContinuous(db);
    const sql = `SELECT extract(epoch FROM next_run_after
                          - (SELECT max(ended_at) FROM dag_run WHERE dag_id = 'loop' AND run_type = 'scheduled'))::float8 AS s,
                        next_run_after <= now() AS is_due, next_logical_date = next_run_after AS is_dated
                 FROM dag WHERE dag_id = 'loop'`;
    const row = await db.one<{ s: number; is_due: boolean; is_dated: boolean }>(adhoc(sql));
    expect(row?.is_dated).toBe(true);
    return row?.is_due ? "now" : row?.s;
  };

  it("waits longer before each run, up to 5 minutes, until a run succeeds", async () => {
    const delays = [];
    for (let n = 0; n < 12; n++) {
      await ended("failed");
      delays.push(await delay());
    }
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    expect(await planContinuous(db)).toBe(0);
    expect(await nextDueIn(db)).toBeGreaterThan(200_000);
    await ended("success");
    expect(await delay()).toBe("now");
    await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
    await ended("failed");
    expect(await delay()).toBe(1);
  });

  it("runs immediately after a manual run succeeded, new code was published, or a user unpaused it", async () => {
    const fail = async () => {
      await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
      for (let n = 0; n < 5; n++) await ended("failed");
      expect(await delay()).toBe(16);
    };
    await fail();
    await ended("failed", false);
    expect(await delay()).toBe(16);
    await ended("success", false);
    expect(await delay()).toBe("now");
    await fail();
    await seedDag(db, "loop", { schedule: { kind: "continuous" }, maxActiveRuns: 1 });
    expect(await delay()).toBe("now");
    await fail();
    await db.transaction((tx) => setPaused(tx, ["loop"], true));
    await db.transaction((tx) => setPaused(tx, ["loop"], false));
    expect(await delay()).toBe("now");
  });
});

it("checks again under the lock before it plans a continuous DAG", async () => {
  await seedDag(db, "loop", { schedule: { kind: "continuous" }, maxActiveRuns: 1 });
  await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
  const statements: string[] = [];
  const meanwhile = interleaved(db, {
    after: async (statement) => {
      // A run that was created after the locking statement began.
      if (statements.push(statement) === 1) await seedRuns(db, "loop");
    },
  });
  expect(await planContinuous(meanwhile)).toBe(0);
  expect(statements).toHaveLength(2);
});

async function createAll(): Promise<void> {
  while ((await createDueRuns(db, planner, 10)).dags > 0);
}

async function queued(dagId: string): Promise<number> {
  const sql = `SELECT count(*)::int AS n FROM dag_run
               WHERE dag_id = $1 AND state = 'queued' AND run_type = 'scheduled'`;
  return (await db.one<{ n: number }>(adhoc(sql), [dagId]))?.n ?? 0;
}

import { beforeEach, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../test/support/test-database.ts";
import { planNext } from "../schedule/planner.ts";
import { adhoc, type Connection, type Database, type Statement } from "./database.ts";
import { createDueRuns, nextDueIn, planContinuous } from "./due-runs.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

const HOUR = 3_600_000;

it("leaves what a DAG is behind with in its plan, beyond as many runs as may be active", async () => {
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

it("does not let runs that people queued hold up the schedule", async () => {
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

it("looks again under the lock before it plans a continuous DAG", async () => {
  await seedDag(db, "loop", { schedule: { kind: "continuous" }, maxActiveRuns: 1 });
  await db.rows(adhoc("UPDATE dag SET next_run_after = NULL"));
  const statements: string[] = [];
  const interleaved = {
    transaction: <T>(work: (tx: Connection) => Promise<T>) =>
      db.transaction((tx) =>
        work({
          ...tx,
          rows: async <R>(statement: Statement, values?: readonly unknown[]) => {
            const rows = await tx.rows<R>(statement, values);
            // A run that came into being after the locking statement began.
            if (statements.push(statement.name) === 1) await seedRuns(db, "loop");
            return rows;
          },
        }),
      ),
  };
  expect(await planContinuous(interleaved as Database)).toBe(0);
  expect(statements).toHaveLength(2);
});

async function createAll(): Promise<void> {
  while ((await createDueRuns(db, planNext, 10)).dags > 0);
}

async function queued(dagId: string): Promise<number> {
  const sql = `SELECT count(*)::int AS n FROM dag_run
               WHERE dag_id = $1 AND state = 'queued' AND run_type = 'scheduled'`;
  return (await db.one<{ n: number }>(adhoc(sql), [dagId]))?.n ?? 0;
}

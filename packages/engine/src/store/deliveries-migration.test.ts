/** Deliveries that were on their way when the database was brought from version 31 to 32. */
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { adhoc } from "./database.ts";
import { takeDeliveries } from "./deliveries.ts";
import { migrate } from "./migrate.ts";

const MIGRATIONS = join(import.meta.dirname, "migrations");

it("are delivered with what they had to say", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tw-migrations-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const name of (await readdir(MIGRATIONS)).filter((each) => each < "0032"))
    await cp(join(MIGRATIONS, name), join(folder, name));
  const { db } = await testDatabase({ empty: true });
  await migrate(db, { folder });
  const sql = (text: string) => db.rows(adhoc(text));
  await sql(`INSERT INTO bundle (hash, code) VALUES ('h', '')`);
  await sql(`INSERT INTO dag (dag_id, file, is_paused) VALUES ('d', 'd.ts', false)`);
  await sql(
    `INSERT INTO dag_version (dag_id, number, bundle_hash, manifest, source) VALUES ('d', 1, 'h', '{"tasks":[]}', '')`,
  );
  await sql(`INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by, logical_date)
    SELECT 'd', 'r', 'manual', 'running', id, 'cli', '2026-01-31T01:00:00Z' FROM dag_version`);
  await sql(`INSERT INTO deadline (dag_run_id, task_id, ordinal, counts_from, actions, due_at, clear_number, state)
    SELECT id, 't', 1, 'queued', '[]', '2026-01-31T05:00:00Z', 0, 'missed' FROM dag_run`);
  await sql(`INSERT INTO deadline_delivery (deadline_id, place, action, due_at, missed_at)
    SELECT id, 0, '{"kind":"webhook","to":"pager"}', due_at, '2026-01-31T05:00:01Z' FROM deadline`);
  await migrate(db);
  const { own } = await takeDeliveries(db, { limit: 5, leaseMs: 1_000 });
  expect(own).toMatchObject([
    {
      action: { kind: "webhook", to: "pager" },
      event: "deadline",
      occurred_at: new Date("2026-01-31T05:00:01Z"),
      dag_id: "d",
      run_id: "r",
      report: {
        event: "deadline.missed",
        dagId: "d",
        runId: "r",
        taskId: "t",
        logicalDate: "2026-01-31T01:00:00.000Z",
        ordinal: 1,
        after: "queued",
        dueAt: "2026-01-31T05:00:00.000Z",
      },
    },
  ]);
});

/** Starts that wait, in the database: written once, removed once, and moved there from where they were before. */
import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { adhoc } from "./database.ts";
import { migrate } from "./migrate.ts";
import { loadStarts, startCalls } from "./run-starts.ts";

const MIGRATIONS = fileURLToPath(new URL("./migrations", import.meta.url));

it("moves starts out of the state of runs that are under way", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tw-migrations-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const files = (await readdir(MIGRATIONS)).sort();
  const before = files.slice(
    0,
    files.findIndex((name) => name.endsWith("_run_starts.sql")),
  );
  for (const name of before) await copyFile(join(MIGRATIONS, name), join(folder, name));
  const { db } = await testDatabase({ empty: true });
  await migrate(db, { folder });
  // Only what is moved is of interest here: the run itself may be missing.
  await db.rows(adhoc("ALTER TABLE run_drive DROP CONSTRAINT run_drive_dag_run_id_fkey"));
  const states = {
    1: {
      rules: [],
      tasks: { a: { starts: 3, causes: [4, null, { restart: [7] }], failures: 2 }, b: { starts: 2 } },
    },
    2: { tasks: { a: { tickAt: 5 } }, closed: "Ann" },
    3: {},
  };
  for (const [id, state] of Object.entries(states))
    await db.rows(
      adhoc("INSERT INTO run_drive (dag_run_id, tx, signal_id, since, state) VALUES ($1, '1', 0, now(), $2)"),
      [id, JSON.stringify(state)],
    );
  await migrate(db);
  const causes = { a: [{ start: [4] }, null, { restart: [7] }], b: [null, null] };
  const starts = Object.entries(causes).flatMap(([taskId, all]) =>
    all.map((cause, ordinal) => ({ taskId, ordinal, cause })),
  );
  expect(await loadStarts(db, [1, 2, 3])).toEqual(new Map([[1, starts]]));
  const sql = "SELECT dag_run_id, state FROM run_drive ORDER BY dag_run_id";
  expect(await db.rows(adhoc(sql))).toEqual([
    { dag_run_id: 1, state: { rules: [], tasks: { a: { failures: 2 }, b: {} } } },
    { dag_run_id: 2, state: states[2] },
    { dag_run_id: 3, state: {} },
  ]);

  const added = [{ taskId: "a", ordinal: 3, cause: { start: [8] } }];
  await db.pipeline(startCalls([{ runId: 1, starts: [{ taskId: "a", from: 0, before: 2, added }] }]));
  expect((await loadStarts(db, [1])).get(1)).toEqual([starts[2], ...added, ...starts.slice(3)]);
});

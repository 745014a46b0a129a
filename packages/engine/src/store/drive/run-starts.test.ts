/** Pending starts are written once and deleted once. */
import { expect, it } from "vitest";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc } from "../database/database.ts";
import { loadStarts, startCalls } from "./run-starts.ts";

it("appends starts, removes the first ones, and loads the rest in order", async () => {
  const { db } = await testDatabase();
  // The run itself is not needed here.
  await db.rows(adhoc("ALTER TABLE run_drive DROP CONSTRAINT run_drive_dag_run_id_fkey"));
  await db.rows(
    adhoc(
      "INSERT INTO run_drive (dag_run_id, tx, signal_id, since) SELECT id, '1', 0, now() FROM unnest('{1,2}'::int[]) id",
    ),
  );
  const causes = { a: [{ start: [4] }, null, { restart: [7] }], b: [null, null] };
  const starts = Object.entries(causes).flatMap(([taskId, all]) =>
    all.map((cause, ordinal) => ({ taskId, ordinal, cause })),
  );
  const written = Object.keys(causes).map((taskId) => ({
    taskId,
    from: 0,
    before: 0,
    added: starts.filter((start) => start.taskId === taskId),
  }));
  await db.pipeline(startCalls([{ runId: 1, starts: written }]));
  expect(await loadStarts(db, [1, 2, 3])).toEqual(new Map([[1, starts]]));

  const added = [{ taskId: "a", ordinal: 3, cause: { start: [8] } }];
  await db.pipeline(startCalls([{ runId: 1, starts: [{ taskId: "a", from: 0, before: 2, added }] }]));
  expect((await loadStarts(db, [1])).get(1)).toEqual([starts[2], ...added, ...starts.slice(3)]);
});

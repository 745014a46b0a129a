/** Times that are part of a condition: one signal each, and no run. */
import type { GatherManifest, ScheduleManifest, SignalCondition } from "@tradewind/sdk/manifest";
import { beforeEach, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { planner } from "../../model/calendar/planner.ts";
import { adhoc } from "../database/database.ts";
import { createDueRuns } from "./due-runs.ts";

let test: TestDatabase;

const leaf = (namespace: string, key: string): SignalCondition => ({
  ...{ kind: "signal", namespace, key, where: null, equals: null, inRun: false },
});
const timed = (time: GatherManifest["time"]): ScheduleManifest => ({
  kind: "signal",
  when: { kind: "any", of: [leaf("asset", "a"), leaf("schedule", "")] },
  route: null,
  gather: { each: "batch", partitioned: false, assets: [], ...(time && { time }) },
});
const hourly = timed({ kind: "interval", everyMs: 3_600_000, style: "trigger" });

beforeEach(async () => {
  test = await testDatabase();
});

const plan = async (dagId = "timed") =>
  (await test.db.one<{ next_run_after: Date | null }>(
    adhoc("SELECT next_run_after FROM dag WHERE dag_id = $1"),
    [dagId],
  ))!.next_run_after;
const overdue = (hours: number) =>
  test.db.rows(
    adhoc(`UPDATE dag SET next_run_after = t.at, next_logical_date = t.at, next_interval_start = t.at,
                          next_interval_end = t.at
           FROM (SELECT date_trunc('hour', now()) - $1 * interval '1 hour' AS at) AS t`),
    [hours],
  );
const told = () =>
  test.db.rows<{ key: string; value: { runId: null; runAfter: string } }>(
    adhoc("SELECT key, value FROM signal WHERE namespace = 'schedule' ORDER BY id"),
  );
const look = () => createDueRuns(test.db, planner, 10);

it("plans the first time after the DAG was published", async () => {
  await seedDag(test.db, "timed", { schedule: hourly });
  await seedDag(test.db, "untimed", { schedule: timed(undefined) });
  await seedDag(test.db, "later", { schedule: hourly, start: "2999-01-01T00:00:00.000Z" });
  expect((await plan())!.getTime()).toBeGreaterThan(Date.now() - 60_000);
  expect(await plan("untimed")).toBeNull();
  expect((await plan("later"))!.toISOString()).toBe("2999-01-01T00:00:00.000Z");
});

it("sends one signal for a time that has come when called concurrently, and creates no run", async () => {
  await seedDag(test.db, "timed", { schedule: hourly });
  await overdue(0);
  const due = (await plan())!.toISOString();
  await Promise.all(Array.from({ length: 5 }, look));
  expect(await told()).toEqual([{ key: "timed", value: { runId: null, logicalDate: due, runAfter: due } }]);
  expect(await test.db.rows(adhoc("SELECT 1 FROM dag_run"))).toEqual([]);
  expect((await plan())!.getTime()).toBe(Date.parse(due) + 3_600_000);
});

it("sends only the newest of several overdue times", async () => {
  await seedDag(test.db, "timed", { schedule: hourly });
  await overdue(30);
  while ((await look()).dags > 0);
  expect(await told()).toHaveLength(1);
  expect(Date.now() - Date.parse((await told())[0]!.value.runAfter)).toBeLessThan(3_660_000);
  expect((await plan())!.getTime()).toBeGreaterThan(Date.now() - 60_000);
});

it("sends nothing for a paused DAG, and does not delay other DAGs", async () => {
  await seedDag(test.db, "timed", { schedule: hourly });
  await seedDag(test.db, "plain", { schedule: { kind: "interval", everyMs: 3_600_000, style: "trigger" } });
  await overdue(0);
  await test.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'timed'"));
  await look();
  expect((await told()).map(({ key }) => key)).toEqual(["plain"]);
  await test.db.rows(adhoc("UPDATE dag SET is_paused = false"));
  await look();
  expect((await told()).map(({ key }) => key)).toEqual(["plain", "timed"]);
});

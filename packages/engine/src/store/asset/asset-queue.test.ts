/** Queued asset events: events from which a schedule has not created a run yet. */
import type { ScheduleManifest, SignalCondition } from "@tradewind/sdk/manifest";
import { beforeEach, expect, it } from "vitest";
import { seedDag } from "../../../test/support/catalogue-seed.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { silentLogger } from "../../service/logger.ts";
import { SignalSchedules } from "../../trigger/schedule/signal-schedules.ts";
import { adhoc } from "../database/database.ts";
import { cleanHistory } from "../run/history.ts";
import { recordEvent } from "./asset-events.ts";
import { forgetQueued, listQueued } from "./asset-queue.ts";

let test: TestDatabase;

beforeEach(async () => {
  test = await testDatabase();
  const leaf = (key: string): SignalCondition => ({
    ...{ kind: "signal", namespace: "asset", key, where: null, equals: null, inRun: false },
  });
  const asset = (uri: string) => ({ kind: "asset" as const, uri, group: "asset", description: null });
  const schedule: ScheduleManifest = {
    kind: "signal",
    when: { kind: "all", of: [leaf("a"), leaf("b")] },
    route: null,
    gather: { each: "batch", partitioned: false, assets: [asset("a"), asset("b")] },
  };
  await seedDag(test.db, "both", { schedule });
});

const send = (uri: string, payload: number) =>
  test.db.transaction((tx) => recordEvent(tx, { uri, payload, partition: null, sender: "test" }));

async function look(): Promise<void> {
  const schedules = new SignalSchedules({ database: test.db, logger: silentLogger, onRuns: () => {} });
  while ((await schedules.read(performance.now() + 10_000)).isHeld);
}

const queued = async () => (await listQueued(test.db, {})).map(({ events, uri }) => `${events} of ${uri}`);
const made = () =>
  test.db.rows<{ payloads: number[] }>(
    adhoc(`SELECT ARRAY(SELECT (e->>'payload')::int FROM json_array_elements(conf->'assetEvents') AS e) AS payloads
           FROM dag_run WHERE dag_id = 'both' ORDER BY id`),
  );

it("lists the same events before and after the triggerer reads them, until the run is created", async () => {
  await send("a", 1);
  await send("a", 2);
  await send("other", 9);
  expect(await queued()).toEqual(["2 of a"]);
  await look();
  expect(await queued()).toEqual(["2 of a"]);
  await send("b", 3);
  expect(await queued()).toEqual(["2 of a", "1 of b"]);
  await look();
  expect(await queued()).toEqual([]);
  expect(await made()).toEqual([{ payloads: [1, 2, 3] }]);
});

it("keeps queued events in retention, regardless of age and although their signals are deleted", async () => {
  for (const n of [1, 2]) await send("a", n);
  await look();
  for (const n of [3, 4]) await send("other", n);
  await test.db.rows(adhoc("UPDATE signal SET created_at = now() - interval '1 year'"));
  await test.db.rows(adhoc("UPDATE asset_event SET created_at = now() - interval '1 year'"));
  await test.db.rows(adhoc("DELETE FROM signal"));
  await cleanHistory(test.db, { olderThanMs: 86_400_000, dryRun: false, batch: 100, only: ["asset_events"] });
  // Of the other events only the newest is kept.
  const left = await test.db.rows<{ n: number }>(
    adhoc("SELECT payload::text::int AS n FROM asset_event ORDER BY id"),
  );
  expect(left.map(({ n }) => n)).toEqual([1, 2, 4]);
  await send("b", 5);
  await look();
  expect(await made()).toEqual([{ payloads: [1, 2, 5] }]);
});

it("drops queued events: the schedule continues with later events", async () => {
  await send("a", 1);
  await look();
  await send("b", 2);
  expect(await test.db.transaction((tx) => forgetQueued(tx, "both"))).toBe(true);
  expect(await queued()).toEqual([]);
  await look();
  expect(await made()).toEqual([]);
  await send("b", 3);
  await send("a", 4);
  await look();
  expect(await made()).toEqual([{ payloads: [3, 4] }]);
});

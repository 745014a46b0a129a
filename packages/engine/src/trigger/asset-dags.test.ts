/** Assets between DAGs, with real tasks: some tasks produce assets, other DAGs are scheduled on them. */
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "assets.ts": `
      import { all, any, asset, assetAlias, cron, dag, fail, on, skip, TimeDeltaTrigger } from "tradewind";
      const orders = asset<{ rows: number }>("s3://shop/orders", { group: "shop", description: "All orders." });
      const customers = asset("s3://shop/customers");
      const days = asset<{ day: string }>("s3://shop/days");
      const daily = assetAlias("daily");
      const hourly = asset("s3://shop/hourly");
      const pieces = asset<string>("s3://shop/pieces");

      export const sell = dag("sell", {}, (d) => {
        d.task("two", { produces: [orders] }, async (_, ctx) => {
          await ctx.produce(orders, { rows: 1 });
          await ctx.produce(orders, { rows: 2 });
        });
      });
      export const broken = dag("broken", {}, (d) => {
        d.task("fails", { produces: [orders] }, async (_, ctx) => {
          await ctx.produce(orders, { rows: 9 });
          return fail("no");
        });
        d.task("skips", { produces: [orders] }, async (_, ctx) => {
          await ctx.produce(orders, { rows: 8 });
          return skip("no");
        });
      });
      export const sign = dag("sign", {}, (d) => {
        d.task("up", { produces: [customers] }, () => "plain");
      });
      export const split = dag("split", {}, (d) => {
        d.task("days", { produces: [days] }, async (_, ctx) => {
          for (const day of ["mon", "tue", "mon"]) await ctx.produce(days, { day }, { partition: day });
        });
      });
      export const named = dag("named", {}, (d) => {
        d.task("export", { produces: [daily] }, (_, ctx) => ctx.produce(daily, asset("s3://shop/2027"), { n: 1 }));
      });
      export const undeclared = dag("undeclared", {}, (d) => {
        d.task("export", (_, ctx) => ctx.produce(orders, { rows: 1 }));
      });

      export const each = dag("each", { schedule: on(orders, { each: "event" }) }, (d) => {
        d.task("rows", { consumes: [orders] }, (_, ctx) => ctx.params.assetEvents?.map(({ payload }) => payload?.rows ?? 0) ?? []);
      });
      export const batch = dag("batch", { schedule: on(orders) }, (d) => {
        d.task("rows", (_, ctx) => ctx.assetEvents.map((event) => (orders.is(event) ? event.payload?.rows ?? 0 : -1)));
      });
      export const both = dag("both", { schedule: on(all(orders, customers)) }, (d) => {
        d.task("uris", (_, ctx) => ctx.assetEvents.map(({ uri, source }) => uri + " by " + source?.taskId));
      });
      export const parts = dag("parts", { schedule: on(days, { partitioned: true }) }, (d) => {
        d.task("key", (_, ctx) => ctx.params.partition + " " + ctx.params.assetEvents?.length);
      });
      export const any_daily = dag("any_daily", { schedule: on(daily) }, (d) => {
        d.task("uri", (_, ctx) => ctx.assetEvents.map(({ uri, alias }) => alias + " " + uri));
      });
      export const mapped = dag("mapped", {}, (d) => {
        d.map("part", { over: ["x", "y"], produces: [pieces] }, (item, _, ctx) => ctx.produce(pieces, item));
      });
      export const waiting = dag("waiting", {}, (d) => {
        d.trigger("wait", new TimeDeltaTrigger({ delta: "10ms" }), { produces: [pieces] });
      });
      export const gathered = dag("gathered", { schedule: on(pieces) }, (d) => {
        d.task("pieces", (_, ctx) => ctx.assetEvents.map(({ payload, source }) => [payload, source?.mapIndex]));
      });
      export const hour = dag("hour", {}, (d) => {
        d.task("make", { produces: [hourly] }, () => {});
      });
      export const both_timed = dag("both_timed", { schedule: on(all(hourly, cron("* * * * * *"))) }, (d) => {
        d.task("events", (_, ctx) => ctx.assetEvents.length);
      });
      export const timed = dag("timed", { schedule: on(any(hourly, cron("* * * * * *"))) }, (d) => {
        d.task("time", (_, ctx) => ctx.params.time ?? "none");
      });
    `,
  });
  await rig.triggerer({ shared: false });
  await rig.scheduler();
});

interface Made {
  readonly id: number;
  readonly run_id: string;
  readonly run_type: string;
  readonly partition_key: string | null;
}

const runs = (dagId: string) =>
  rig.db.rows<Made>(
    adhoc("SELECT id, run_id, run_type, partition_key FROM dag_run WHERE dag_id = $1 ORDER BY id"),
    [dagId],
  );

async function outputs(dagId: string, task: string): Promise<unknown[]> {
  const made = await runs(dagId);
  for (const { id } of made) expect(await rig.ended(id)).toBe("success");
  return Promise.all(made.map(({ id }) => rig.output(id, task)));
}

it("creates one run per event, or one run for all pending events", async () => {
  expect(await rig.ended(await rig.trigger("sell"))).toBe("success");
  await rig.until(async () => (await runs("each")).length === 2 && (await runs("batch")).length > 0, "runs");
  expect(await outputs("each", "rows")).toEqual([[1], [2]]);
  expect((await outputs("batch", "rows")).flat()).toEqual([1, 2]);
  const [first] = await runs("each");
  expect(first).toMatchObject({ run_type: "asset_triggered", partition_key: null });
}, 60_000);

it("stores no event of a failed task, and rejects an undeclared asset", async () => {
  const count = async () =>
    (await rig.db.one<{ n: number }>(adhoc("SELECT count(*) AS n FROM asset_event")))!.n;
  const before = await count();
  await rig.ended(await rig.trigger("broken"));
  const run = await rig.trigger("undeclared");
  expect(await rig.ended(run)).toBe("failed");
  expect((await rig.tasks(run))["export"]!.reason).toMatch(/TW_BAD_ASSET.*add it to its `produces`/);
  expect(await count()).toBe(before);
}, 60_000);

it("all() waits for the other asset, and its run receives all events since the last run", async () => {
  expect(await runs("both")).toEqual([]);
  await rig.ended(await rig.trigger("sign"));
  await rig.until(async () => (await runs("both")).length === 1, "a run of both");
  expect(await outputs("both", "uris")).toEqual([
    ["s3://shop/orders by two", "s3://shop/orders by two", "s3://shop/customers by up"],
  ]);
}, 60_000);

it("creates one run per partition, with the partition key", async () => {
  await rig.ended(await rig.trigger("split"));
  await rig.until(async () => (await runs("parts")).length === 2, "two partitions");
  expect(await outputs("parts", "key")).toEqual(["mon 2", "tue 1"]);
  expect((await runs("parts")).map(({ partition_key }) => partition_key)).toEqual(["mon", "tue"]);
}, 60_000);

it("resolves an alias to the asset that the task names", async () => {
  await rig.ended(await rig.trigger("named"));
  await rig.until(async () => (await runs("any_daily")).length === 1, "a run of the alias");
  expect(await outputs("any_daily", "uri")).toEqual([["daily s3://shop/2027"]]);
}, 60_000);

it("stores an event per instance of a mapped task, and for a wait that succeeds without a worker", async () => {
  const pieces = async () =>
    (await outputs("gathered", "pieces")).flat().toSorted() as [payload: unknown, mapIndex: number][];
  await rig.ended(await rig.trigger("mapped"));
  await rig.until(async () => (await pieces()).length === 2, "two pieces");
  expect(await pieces()).toEqual([
    ["x", 0],
    ["y", 1],
  ]);
  await rig.ended(await rig.trigger("waiting"));
  await rig.until(async () => (await pieces()).length === 3, "the third");
  expect(await pieces()).toContainEqual([null, -1]);
}, 60_000);

it("any() with a time creates a run for the first of both, all() after both", async () => {
  await rig.until(async () => (await runs("timed")).length >= 2, "two ticks");
  const [first] = await runs("timed");
  expect(await rig.ended(first!.id)).toBe("success");
  expect(await rig.output(first!.id, "time")).toMatch(/^\d{4}-.*Z$/);
  const times = await rig.db.rows<{ time: string }>(
    adhoc("SELECT conf->>'time' AS time FROM dag_run WHERE dag_id IN ('timed', 'both_timed')"),
  );
  expect(new Set(times.map(({ time }) => time)).size).toBe(times.length);
  expect(await runs("both_timed")).toEqual([]);
  await rig.ended(await rig.trigger("hour"));
  await rig.until(async () => (await runs("both_timed")).length === 1, "a run of both");
  const [made] = await runs("both_timed");
  expect(await rig.ended(made!.id)).toBe("success");
  expect(await rig.output(made!.id, "events")).toBe(1);
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id IN ('timed', 'both_timed')"));
}, 60_000);

it("keeps events that arrive while a DAG is paused", async () => {
  const pause = (isPaused: boolean) =>
    rig.db.rows(adhoc("UPDATE dag SET is_paused = $1 WHERE dag_id IN ('each', 'batch')"), [isPaused]);
  const before = { each: (await runs("each")).length, batch: (await runs("batch")).length };
  await pause(true);
  rig.wakeUps.send("dags");
  for (let i = 0; i < 2; i++) await rig.ended(await rig.trigger("sell"));
  expect(await runs("each")).toHaveLength(before.each);
  await pause(false);
  rig.wakeUps.send("dags");
  await rig.until(async () => (await runs("each")).length === before.each + 4, "four runs");
  // Usually one run. More if an open transaction, even in another database, hid some of the events for a while.
  const rows = async () => {
    const made = (await runs("batch")).slice(before.batch);
    const outputs = await Promise.all(made.map(({ id }) => rig.output(id, "rows")));
    return { made: made.length, rows: outputs.flat() };
  };
  await rig.until(async () => (await rows()).rows.filter((n) => n !== undefined).length >= 4, "all in runs");
  expect((await rows()).rows).toEqual([1, 2, 1, 2]);
  expect((await rows()).made).toBeLessThan(4);
}, 60_000);

it("records which events a run was created from, and which DAGs name an asset", async () => {
  const links = await rig.db.rows(
    adhoc(`SELECT r.dag_id, count(*) AS n FROM asset_event_run x JOIN dag_run r ON r.id = x.dag_run_id
           JOIN asset_event e ON e.id = x.event_id WHERE r.dag_id IN ('each', 'both') GROUP BY 1 ORDER BY 1`),
  );
  expect(links).toEqual([
    { dag_id: "both", n: 3 },
    { dag_id: "each", n: 6 },
  ]);
  const uses = await rig.db.rows(
    adhoc(`SELECT u.dag_id, u.task_id, u.kind FROM asset_use u JOIN asset a ON a.id = u.asset_id
           WHERE a.uri = 's3://shop/orders' AND a.group_name = 'shop' AND a.description = 'All orders.'
           ORDER BY 1, 2, 3`),
  );
  expect(uses).toContainEqual({ dag_id: "sell", task_id: "two", kind: "produces" });
  expect(uses).toContainEqual({ dag_id: "each", task_id: "rows", kind: "consumes" });
  expect(uses).toContainEqual({ dag_id: "both", task_id: "", kind: "schedule" });
});

import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import {
  type AssetEvent,
  type AssetParams,
  all,
  any,
  asset,
  assetAlias,
  cron,
  type Dag,
  dag,
  every,
  Operator,
  on,
  signal,
  skip,
  start,
  type TaskContext,
} from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

const rows = z.object({ rows: z.number(), at: z.string().default("now") });
const orders = asset("s3://orders", { schema: rows, group: "shop", description: "All of them." });
const customers = asset<string[]>("s3://customers");
const daily = assetAlias("daily");

const ORDERS = { kind: "asset", uri: "s3://orders", group: "shop", description: "All of them." };
const leaf = (key: string, where: object | null = null) => ({
  ...{ kind: "signal", namespace: "asset", key, where, equals: null, inRun: false },
});
const time = { ...leaf(""), namespace: "schedule" };

const manifest = (defined: Dag<never>) => defined[PROGRAM].describe();
const scheduled = (schedule: ReturnType<typeof on>) =>
  manifest(dag("x", { schedule }, (d) => void d.task("t", () => 1)) as Dag<never>).schedule;

describe("a schedule on assets", () => {
  test("becomes a condition on signals with its gather options", () => {
    expect(scheduled(on(orders) as never)).toEqual({
      kind: "signal",
      when: leaf("s3://orders"),
      route: null,
      gather: { each: "batch", partitioned: false, assets: [ORDERS] },
    });
    expect(
      scheduled(on(all(orders, any(orders, daily)), { each: "event", partitioned: true }) as never),
    ).toEqual({
      kind: "signal",
      when: {
        kind: "all",
        of: [leaf("s3://orders"), { kind: "any", of: [leaf("s3://orders"), leaf("*", { alias: "daily" })] }],
      },
      route: null,
      gather: {
        each: "event",
        partitioned: true,
        assets: [ORDERS, { kind: "alias", name: "daily", group: "asset" }],
      },
    });
  });

  test("accepts one time among its parts", () => {
    const schedule = scheduled(on(any(orders, cron("0 6 * * *", "Europe/Berlin"))) as never);
    expect(schedule).toMatchObject({
      when: { kind: "any", of: [leaf("s3://orders"), time] },
      gather: {
        time: { kind: "cron", expression: "0 6 * * *", timezone: "Europe/Berlin", style: "trigger" },
      },
    });
  });

  test.each<[string, () => unknown]>([
    ["one time", () => on(all(orders, every("1h"), cron("* * * * *")))],
    ["no partition", () => on(any(orders, every("1h")), { partitioned: true })],
    ['style "trigger"', () => on(any(orders, every("1h", { style: "interval" })))],
    ["other signals", () => on(all(orders, signal("paid")) as never)],
    ["parts of conditions on assets", () => on(all(signal("paid"), every("1h")))],
    ["parts of conditions on assets", () => start(any(signal("paid"), every("1h")))],
    ['each must be one of "batch", "event"', () => on(orders, { each: "all" as never })],
    ['unknown option "route"', () => on(orders, { route: "x" } as never)],
    ["a task cannot be part", () => on(all(orders, { kind: "output" } as never))],
  ])("rejects with: %s", (words, define) => {
    expect(() => dag("x", (d) => void d.task("t", { on: [define() as never] }, () => 1))).toThrow(words);
  });

  test("passes validated and typed events to the run", async () => {
    const defined = dag("x", { schedule: on(any(orders, customers)) }, (d) => {
      d.task("t", (_, ctx) => {
        type Event = AssetEvent<z.output<typeof rows>> | AssetEvent<string[]>;
        expectTypeOf(ctx.params).toEqualTypeOf<AssetParams<Event>>();
        return ctx.assetEvents.map((event) => {
          if (!orders.is(event)) return event.uri;
          expectTypeOf(event.payload).toExtend<{ rows: number; at: string } | null>();
          return event.payload?.rows ?? 0;
        });
      });
      d.task("checked", (_, ctx) => ctx.params.assetEvents?.map(({ payload }) => payload) ?? []);
    });
    const event = (uri: string, payload: unknown) => ({ id: 1, uri, payload, partition: null, alias: null });
    const conf = {
      assetEvents: [
        event("s3://orders", { rows: 2 }),
        event("s3://customers", ["a"]),
        event("s3://orders", null),
      ],
    } as never;
    expect(await attempt(defined, "t", { conf })).toMatchObject({ output: [2, "s3://customers", 0] });
    expect(await attempt(defined, "checked", { conf })).toMatchObject({
      output: [{ rows: 2, at: "now" }, ["a"], null],
    });
    expect(await attempt(defined, "t", { conf: {} })).toMatchObject({ output: [] });
    const wrong = { assetEvents: [event("s3://orders", { rows: "many" })] } as never;
    expect(await attempt(defined, "t", { conf: wrong })).toMatchObject({
      kind: "failed",
      error: { code: "TW_PARAMS_INVALID", message: expect.stringContaining("assetEvents.0.payload.rows") },
    });
  });
});

describe("tasks", () => {
  const one = (run: (ctx: TaskContext) => unknown, produces = [orders, customers, daily]) =>
    dag("x", (d) => void d.task("t", { produces }, (_, ctx) => run(ctx) as Promise<number>));

  test("list their assets in the manifest, and leave it unchanged without any", () => {
    const [made, plain] = manifest(
      dag("x", (d) => {
        d.task("made", { produces: [orders, daily, orders], consumes: [customers] }, () => 1);
        d.task("plain", { produces: [] }, () => 1);
      }) as Dag<never>,
    ).tasks;
    expect(made!.produces).toEqual([ORDERS, { kind: "alias", name: "daily", group: "asset" }]);
    expect(made!.consumes).toMatchObject([{ uri: "s3://customers" }]);
    expect(plain).not.toHaveProperty("produces");
    expect(plain).not.toHaveProperty("consumes");
  });

  test("publish their events with the success", async () => {
    const outcome = await attempt(
      one(async (ctx) => {
        await ctx.produce(orders, { rows: 1 }, { partition: "mon" });
        await ctx.produce(daily, asset("s3://2027"), [1]);
        void ctx.produce(customers, null);
      }),
      "t",
    );
    expect(outcome).toMatchObject({
      kind: "success",
      signals: [
        {
          namespace: "asset",
          key: "s3://orders",
          value: { payload: { rows: 1 }, partition: "mon", alias: null },
        },
        { namespace: "asset", key: "s3://2027", value: { payload: [1], partition: null, alias: "daily" } },
        { namespace: "asset", key: "s3://customers", value: { payload: null, partition: null, alias: null } },
      ],
    });
  });

  test("publish nothing unless they succeed", async () => {
    const skipped = one(async (ctx) => {
      await ctx.produce(orders, { rows: 1 });
      return skip("no");
    });
    expect(await attempt(skipped, "t")).toEqual({ kind: "skipped", reason: "no" });
  });

  test.each<[string, string, (ctx: TaskContext) => Promise<unknown>]>([
    ["TW_BAD_ASSET", "add it to its `produces`", (ctx) => ctx.produce(asset("s3://other"), null)],
    ["TW_BAD_ASSET", 'alias "weekly"', (ctx) => ctx.produce(assetAlias("weekly"), orders, null)],
    ["TW_BAD_ASSET", "the result of asset()", (ctx) => ctx.produce("s3://orders" as never, null)],
    ["TW_BAD_ASSET", "the result of asset()", (ctx) => ctx.produce(daily, "s3://orders" as never, null)],
    ["TW_ASSET_INVALID", "payload: rows", (ctx) => ctx.produce(orders, { rows: "x" as never })],
    ["TW_ASSET_INVALID", "payload[0] is a Date", (ctx) => ctx.produce(customers, [new Date() as never])],
    ["TW_ASSET_INVALID", "at the asset's address", (ctx) => ctx.produce(customers, ["x".repeat(70_000)])],
    ["TW_ASSET_INVALID", "a partition has", (ctx) => ctx.produce(customers, null, { partition: "" })],
    ["TW_STEP_NESTED", "put it outside", (ctx) => ctx.step("s", () => ctx.produce(customers, null))],
  ])("rejects with %s: %s", async (code, words, run) => {
    const outcome = await attempt(one(run), "t", { host: new RecordingHost() });
    expect(outcome).toMatchObject({
      kind: "failed",
      error: { code, message: expect.stringContaining(words) },
    });
  });

  test("reject a deferral to another method that would lose an event", async () => {
    class Late extends Operator<object, string> {
      async execute(ctx: TaskContext) {
        await ctx.produce(customers, null);
        return this.defer({ trigger: signal("go"), method: "later" }) as never;
      }
      later() {
        return "done";
      }
    }
    const defined = dag("x", (d) => void d.operator("t", new Late({}), { produces: [customers] }));
    expect(await attempt(defined, "t")).toMatchObject({ kind: "failed", error: { code: "TW_SIGNAL_LOST" } });
  });
});

test.each<[string, () => unknown]>([
  ["an address has", () => asset("")],
  ["an address has", () => asset("s3://*")],
  ["an address has", () => asset("x".repeat(501))],
  ["a name has", () => assetAlias("a\nb")],
  ["Standard Schema", () => asset("a", { schema: 7 } as never)],
  ['unknown option "name"', () => asset("a", { name: "b" } as never)],
  [
    "produces takes results of asset()",
    () => dag("x", (d) => void d.task("t", { produces: ["a" as never] }, () => 1)),
  ],
  [
    "consumes takes results of asset()",
    () => dag("x", (d) => void d.task("t", { consumes: [{} as never] }, () => 1)),
  ],
])("rejects with: %s", (words, define) => {
  expect(define).toThrow(words);
});

test("types", () => {
  dag("x", (d) => {
    d.task("t", { produces: [orders] }, async (_, ctx) => {
      // @ts-expect-error: rows is a number
      await ctx.produce(orders, { rows: "x" }).catch(() => {});
      // @ts-expect-error: an alias needs an asset
      await ctx.produce(daily, { rows: 1 }).catch(() => {});
    });
  });
  // @ts-expect-error: a Date is not JSON
  asset("x", { schema: z.object({ at: z.date() }) });
});

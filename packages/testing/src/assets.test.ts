import { asset, dag, fail, on } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { runDag } from "./run-dag.ts";

const orders = asset<{ rows: number }>("s3://orders");
const copies = asset("s3://copies");

test("records asset events among the signals of the run when the task succeeds", async () => {
  const defined = dag("produce", (d) => {
    d.task("export", { produces: [orders, copies] }, (_, ctx) =>
      ctx.produce(orders, { rows: 2 }, { partition: "mon" }),
    );
    d.task("broken", { produces: [orders] }, () => fail("no"));
  });
  const run = await runDag(defined);
  const source = { dagId: "produce", runId: expect.any(String), taskId: "export", mapIndex: -1 };
  expect(run.signals.map(({ key, namespace, value }) => [namespace, key, value])).toEqual([
    ["asset", "s3://orders", { payload: { rows: 2 }, partition: "mon", alias: null, source }],
    ["asset", "s3://copies", { payload: null, partition: null, alias: null, source }],
  ]);
});

test("passes asset events to a DAG in the conf", async () => {
  const defined = dag("report", { schedule: on(orders) }, (d) => {
    d.task(
      "sum",
      (_, ctx) => ctx.params.assetEvents?.reduce((sum, { payload }) => sum + (payload?.rows ?? 0), 0) ?? -1,
    );
  });
  const event = {
    uri: "s3://orders",
    partition: null,
    alias: null,
    time: "2027-01-04T00:00:00Z",
    source: null,
  };
  const assetEvents = [1, 2].map((rows) => ({ ...event, id: rows, payload: { rows } }));
  expect((await runDag(defined, { conf: { assetEvents } })).outputs["sum"]).toBe(3);
  expect((await runDag(defined)).outputs["sum"]).toBe(-1);
});

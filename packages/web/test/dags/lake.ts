/** An asset between two DAGs, and one that waits for a second asset. */
import { all, asset, dag, on, once } from "tradewind";

const orders = asset("s3://lake/orders", { description: "Orders, one folder for each day." });
const customers = asset("s3://lake/customers");
const facts = asset("s3://lake/facts");

export const load = dag("lake_load", { schedule: once() }, (d) => {
  d.task("write", { produces: [orders] }, async (_, ctx) => {
    await ctx.produce(orders, { rows: 120 }, { partition: "2026-11-16" });
  });
});

export const model = dag("lake_model", { schedule: on(orders) }, (d) => {
  d.task("join", { consumes: [customers], produces: [facts] }, () => {});
});

export const report = dag("lake_report", { schedule: on(all(facts, customers)) }, (d) => {
  d.task("sum", () => {});
});

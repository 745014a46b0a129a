/** DAGs that feed each other with assets. */
import { all, any, asset, assetAlias, cron, dag, on } from "tradewind";

const orders = asset("s3://shop/orders", { group: "shop", description: "Orders, one folder for each day." });
const customers = asset("s3://shop/customers", {
  group: "shop",
  description: "Customers with their region.",
});
const returns = asset("s3://shop/returns", { group: "shop" });
const sales = asset("warehouse://sales/facts", { group: "warehouse" });
const margins = asset("warehouse://sales/margins", { group: "warehouse" });
const dashboard = asset("https://bi.shop.example/dashboards/sales", { group: "reports" });
const extracts = assetAlias("extracts");

export const orderExport = dag("shop_export", { schedule: cron("*/2 * * * *"), tags: ["shop"] }, (d) => {
  d.task("orders", { produces: [orders] }, async (_, ctx) => {
    await ctx.produce(orders, { rows: 1_240, checksum: "a41f" }, { partition: "2026-11-18" });
  });
  d.task("customers", { produces: [customers] }, async (_, ctx) => {
    await ctx.produce(customers, { rows: 310 });
  });
});
export const returnExport = dag("shop_returns", { schedule: cron("*/15 * * * *"), tags: ["shop"] }, (d) => {
  d.task("returns", { produces: [returns, extracts] }, () => {});
});
export const model = dag("sales_model", { schedule: on(any(orders, returns)), tags: ["warehouse"] }, (d) => {
  d.task("facts", { consumes: [customers], produces: [sales] }, () => {});
});
export const margin = dag(
  "sales_margins",
  { schedule: on(all(sales, customers)), tags: ["warehouse"] },
  (d) => {
    d.task("margins", { produces: [margins] }, () => {});
  },
);
export const report = dag(
  "sales_dashboard",
  { schedule: on(all(margins, returns)), tags: ["reports"] },
  (d) => {
    d.task("publish", { produces: [dashboard] }, () => {});
  },
);
export const archive = dag("extract_archive", { schedule: on(extracts) }, (d) => {
  d.task("archive", () => {});
});

/** A daily pipeline with groups, a map, a wait, a retry and a task that fails on some days. */
import { setTimeout as sleep } from "node:timers/promises";
import { cron, dag, TimeDeltaTrigger } from "tradewind";
import { z } from "zod";

const params = z.object({
  region: z.enum(["eu", "us", "apac"]).default("eu").describe("Whose sales are loaded."),
  partitions: z.number().int().min(1).max(1_000).default(24).describe("Files that are loaded in parallel."),
  notify: z.boolean().default(true),
  since: z.iso.date().optional().describe("Load again from this day on."),
});

export default dag(
  "sales_daily",
  {
    schedule: cron("0 2 * * *", "Europe/Berlin"),
    start: "2026-09-20",
    catchup: true,
    maxActiveRuns: 4,
    description: "Loads the sales of a day into the warehouse",
    tags: ["finance", "daily"],
    owner: "finance-data",
    params,
  },
  (d) => {
    const ready = d.trigger("wait_for_exports", new TimeDeltaTrigger({ delta: "400ms" }));
    const extracted = d.group("extract", { after: ready }, (g) => {
      const files = g.task("list_files", (_, ctx) => {
        ctx.log.info("listing", { region: ctx.params.region });
        return Array.from({ length: ctx.params.partitions }, (_, part) => ({
          name: `part-${part}.csv`,
          rows: 1_000 + part * 37,
        }));
      });
      const orders = g.task("fetch_orders", { after: files }, async (_, ctx) => {
        for (let page = 1; page <= 6; page += 1) {
          ctx.log.info(`page ${page} of 6`, { rows: page * 1_204 });
          await sleep(40);
        }
        return 1_204_118;
      });
      const refunds = g.task("fetch_refunds", { retries: 2, retryDelay: "300ms" }, async (_, ctx) => {
        await sleep(60);
        if (ctx.tryNumber === 1 && dayOf(dayName(ctx.run.logicalDate)) % 3 === 0)
          throw new Error("connect ETIMEDOUT 10.4.2.17:5432");
        return 18_204;
      });
      return { files, orders, refunds };
    });
    const rows = d.map(
      "load_file",
      { over: extracted.result.files, retries: 1, retryDelay: "200ms", label: (file) => file.name },
      async (file, _, ctx) => {
        await sleep(30 + (file.rows % 7) * 20);
        ctx.log.info("loaded", { name: file.name, rows: file.rows });
        return file.rows;
      },
    );
    const checked = d.task(
      "row_counts",
      { inputs: { rows, orders: extracted.result.orders } },
      ({ rows }) => rows.length,
    );
    const written = d.task(
      "write_warehouse",
      { inputs: { checked, refunds: extracted.result.refunds }, retries: 1, retryDelay: "200ms" },
      async ({ refunds }, ctx) => {
        ctx.log.info("MERGE INTO mart.sales_daily", { day: dayName(ctx.run.logicalDate) });
        await sleep(200);
        if (dayOf(dayName(ctx.run.logicalDate)) % 11 === 0) {
          ctx.log.warn("refund_total: 3 values are beyond NUMERIC(12,2), the merge may overflow");
          throw new RangeError(
            `refund_total exceeds NUMERIC(12,2) in 3 rows of mart.sales_daily for ${dayName(ctx.run.logicalDate)}`,
          );
        }
        return { table: "mart.sales_daily", rows: refunds * 3, day: dayName(ctx.run.logicalDate) };
      },
    );
    d.task("refresh_dashboard", { after: written }, () => sleep(50));
    d.task("cleanup", { after: written, rule: "allDone" }, () => "removed 24 temporary files");
  },
);

function dayOf(date: string): number {
  return Number(date.slice(8, 10));
}

function dayName(date: Date | null): string {
  return (date ?? new Date()).toISOString().slice(0, 10);
}

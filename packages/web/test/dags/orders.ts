/** A task that fails, one that never starts because of it, a group, a map, and params. */
import { dag } from "tradewind";
import { z } from "zod";

const params = z.object({
  region: z.enum(["eu", "us"]).default("eu").describe("Whose orders are loaded."),
  rows: z.number().int().min(1).max(50).default(3),
  fails: z.boolean().default(true),
});

export default dag("orders", { params, tags: ["tests"], owner: "shop", description: "Loads orders" }, (d) => {
  const listed = d.group("extract", (g) =>
    g.task("list", (_, ctx) => {
      ctx.log.info("listing", { region: ctx.params.region });
      return Array.from({ length: ctx.params.rows }, (_, row) => row);
    }),
  );
  const loaded = d.map("load", { over: listed.result }, (row, _, ctx) => {
    ctx.log.info("loading", { row });
    return row;
  });
  const checked = d.task("check", { inputs: { loaded } }, ({ loaded }, ctx) => {
    ctx.log.warn("about to check", { rows: loaded.length });
    if (ctx.params.fails) throw new RangeError(`3 of ${loaded.length} orders have no customer`);
    return loaded.length;
  });
  d.task("report", { inputs: { checked } }, ({ checked }) => ({ rows: checked }));
});

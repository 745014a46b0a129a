/**
 * A small pipeline: reads orders from a source that sometimes fails, checks them, loads them in one of two ways depending on
 * their number, and always cleans up. Try it:
 *
 *   tradewind dags trigger etl --conf '{"region":"us","orders":2000}' --wait
 */
import { dag, fail, once } from "tradewind";
import { z } from "zod";

interface Order {
  id: number;
  amount: number;
}

const params = z.object({
  region: z.enum(["eu", "us"]).default("eu"),
  orders: z.number().int().min(0).max(10_000).default(25),
});

export default dag("etl", { schedule: once(), params, tags: ["example"], owner: "data" }, (d) => {
  // Two retries: the source fails at the first call.
  const orders = d.task("extract", { retries: 2, retryDelay: "200ms" }, (_, ctx): Order[] => {
    if (ctx.tryNumber === 1) throw new Error("the source does not answer");
    ctx.log.info("extracted", { region: ctx.params.region, orders: ctx.params.orders });
    return Array.from({ length: ctx.params.orders }, (_, id) => ({ id, amount: (id * 37) % 100 }));
  });

  // `orders` is an Order[] here: the compiler infers it from `extract`. `fail()` skips retries, which cannot fix a wrong amount.
  const total = d.task("check", { inputs: { orders } }, ({ orders }) =>
    orders.some((order) => order.amount < 0)
      ? fail("an order has a negative amount")
      : orders.reduce((sum, order) => sum + order.amount, 0),
  );

  // One of the two tasks runs, the other is skipped.
  const size = d.branch("size", { inputs: { orders }, after: total }, ({ orders }) =>
    orders.length > 1000 ? "load_in_parts" : "load_at_once",
  );
  const atOnce = d.task("load_at_once", { after: size, inputs: { orders } }, ({ orders }) => orders.length);
  const inParts = d.task("load_in_parts", { after: size, inputs: { orders } }, ({ orders }) => {
    let loaded = 0;
    for (let at = 0; at < orders.length; at += 500) loaded += orders.slice(at, at + 500).length;
    return loaded;
  });

  // With `noneFailedMinOneSuccess` and `allDone` an input may not have succeeded, so its state is checked first.
  d.task("report", { inputs: { total, atOnce, inParts }, rule: "noneFailedMinOneSuccess" }, (inputs, ctx) => {
    const { total, atOnce, inParts } = inputs;
    const rows = atOnce.state === "success" ? atOnce.value : inParts.state === "success" ? inParts.value : 0;
    const sum = total.state === "success" ? total.value : 0;
    ctx.log.info("loaded", { rows, sum });
    return { rows, sum };
  });
  d.task("cleanup", { inputs: { orders, atOnce, inParts }, rule: "allDone" }, ({ orders }) =>
    orders.state === "success" ? `removed ${orders.value.length} temporary rows` : "nothing to remove",
  );
});

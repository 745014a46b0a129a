/** Sends a signal every second, and reacts to signals. */
import { setTimeout as sleep } from "node:timers/promises";
import { dag, once, signal, start } from "tradewind";
import { z } from "zod";

export const batch = signal("orders.batch", z.object({ batch: z.number(), rows: z.number() }));

export default dag("orders_stream", { schedule: once(), tags: ["streaming"], owner: "orders" }, (d) => {
  d.task("read_orders", { lifetime: "streaming" }, async (_, ctx) => {
    for (let number = 1; !ctx.abort.aborted; number += 1) {
      await ctx.send(batch, { batch: number, rows: 100 + ((number * 37) % 900) });
      await sleep(1_000, undefined, { signal: ctx.abort }).catch(() => {});
    }
  });
  d.task("merge_window", { on: [start(batch)] }, async (_, ctx) => {
    ctx.log.info("merged", { signals: ctx.startSignals.length });
    await sleep(60);
    return ctx.startSignals.length;
  });
});

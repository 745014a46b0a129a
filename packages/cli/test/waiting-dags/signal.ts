import { dag, signal } from "tradewind";

const ready = signal("orders.ready");

/** Waits for a signal that no task sends. */
export default dag("on_signal", {}, (d) => {
  d.task("wait", async (_, ctx) => {
    await ctx.until("ready", ready, { timeout: "2s" });
  });
});

/** Waits for a signal. */
import { dag, once, signal } from "tradewind";
import { z } from "zod";

const landed = signal("partner.landed", z.object({ rows: z.number() }));

export default dag("waits", { schedule: once() }, (d) => {
  d.task("wait", async (_, ctx) => {
    const { value } = await ctx.until("landed", landed, { timeout: "4h" });
    return value.rows;
  });
});

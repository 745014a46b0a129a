import { setTimeout as sleep } from "node:timers/promises";
import { dag } from "tradewind";

/** Logs a line every 100 ms, for the time given in conf, and stops on cancellation. */
export default dag("slow", {}, (d) => {
  const count = d.task("count", async (_, ctx) => {
    const lines = Number(ctx.params.lines ?? 3);
    for (let line = 1; line <= lines; line++) {
      ctx.log.info(`line ${line}`, { of: lines });
      await sleep(100, undefined, { signal: ctx.abort });
    }
    return lines;
  });
  d.task("after", { inputs: { count } }, ({ count }) => count);
});

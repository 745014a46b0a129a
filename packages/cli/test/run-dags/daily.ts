import { setTimeout as sleep } from "node:timers/promises";
import { cron, dag } from "tradewind";

const schedule = cron("0 2 * * *", "Europe/Berlin");

/** Only started manually by the tests; its dates are in Berlin time. */
export default dag("daily", { schedule, start: "2090-01-01", maxActiveRuns: 20 }, (d) => {
  const first = d.task("first", async (_, ctx) => {
    ctx.log.info("begins");
    if (ctx.params.lasts === true) await sleep(600_000, undefined, { signal: ctx.abort });
  });
  d.task("second", { after: first }, () => 2);
});

/** One map of 300 items in a pool of few slots, of which one fails: queued and running tasks to look at. */
import { setTimeout as sleep } from "node:timers/promises";
import { cron, dag } from "tradewind";

export default dag(
  "feature_build",
  { schedule: cron("*/10 * * * *"), tags: ["ml"], owner: "ml-platform", maxActiveRuns: 1 },
  (d) => {
    const users = d.task("plan_partitions", () => Array.from({ length: 300 }, (_, part) => part));
    const built = d.map("build_features", { over: users, limit: 6 }, async (part, _, ctx) => {
      ctx.log.info("building", { part });
      await sleep(300 + (part % 5) * 150);
      if (part === 212) throw new Error("feature user_age has 41 % nulls in partition 212, allowed are 5 %");
      return part;
    });
    d.task("publish", { inputs: { built } }, ({ built }) => built.length);
  },
);

/** A wide graph of 60 tasks in layers. */
import { setTimeout as sleep } from "node:timers/promises";
import { cron, dag, type Output } from "tradewind";

const LAYERS = 6;
const WIDTH = 10;

export default dag(
  "warehouse_core",
  { schedule: cron("*/3 * * * *"), tags: ["warehouse"], owner: "warehouse", maxActiveRuns: 2 },
  (d) => {
    let above: Output<number>[] = [];
    for (let layer = 0; layer < LAYERS; layer += 1) {
      const before = above;
      above = Array.from({ length: WIDTH }, (_, at) =>
        d.task(
          `model_${layer}_${at}`,
          { after: before.filter((_, other) => Math.abs(other - at) <= 1) },
          async () => {
            await sleep(80 + ((layer * 7 + at * 13) % 9) * 40);
            return at;
          },
        ),
      );
    }
  },
);

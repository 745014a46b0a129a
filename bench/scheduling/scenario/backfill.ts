/** A year, day by day, with ten tasks in a row each: how many runs per second a backfill creates and drives. */
import { setTimeout as sleep } from "node:timers/promises";
import { findBackfill } from "../../../packages/engine/src/store/backfill/backfills.ts";
import { seedBackfill } from "../../../packages/engine/test/support/seed-backfill.ts";
import type { Figure } from "../../result.ts";
import type { Rig } from "../../rig.ts";
import { digits, median } from "../../statistics.ts";
import type { SuiteOptions as Options } from "../../suite.ts";
import { until } from "../../until.ts";

const FILE = `import { dag, every } from "tradewind";

export default dag("year", { schedule: every("1d") }, (d) => {
  let last = d.task("t0", {}, () => {});
  for (let n = 1; n < 10; n++) last = d.task(\`t\${n}\`, { after: last }, () => {});
});
`;

export async function backfill(rig: Rig, options: Options): Promise<Figure[]> {
  const years = options.quick ? [2001] : [2001, 2002, 2003];
  await rig.publish({ "year.ts": FILE });
  const host = await rig.backfills();
  try {
    const rates: number[] = [];
    for (const year of years) {
      const range = { from: `${year}-01-01`, to: options.quick ? `${year}-02-01` : `${year}-12-31` };
      const started = performance.now();
      const id = await seedBackfill(rig.database, { dagId: "year", ...range, maxActive: 16 });
      host.wake();
      let row: Awaited<ReturnType<typeof findBackfill>>;
      await until("the backfill has ended", async () => {
        await sleep(20);
        row = await findBackfill(rig.database, id);
        return row?.ended_at !== null;
      });
      if (row?.state !== "done") throw new Error(`backfill ${id}: ${row?.state}`);
      rates.push(row.total_runs / ((performance.now() - started) / 1_000));
    }
    const days = options.quick ? 32 : 365;
    return [
      {
        scenario: "c",
        what: `backfill of ${days} days x 10 tasks, 16 runs at once`,
        value: median(rates),
        unit: "runs/s",
        note: `median of ${rates.length}; ${digits(median(rates) * 10)} tasks/s; ${digits(days / median(rates))} s`,
      },
    ];
  } finally {
    await host.stop();
  }
}

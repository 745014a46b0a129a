/**
 * `npm run bench:scheduling`: maps, DAGs that are due at once, backfills, pools, several schedulers. Prints a table and writes
 * bench/results/scheduling-<time>.json. As with `npm run bench`, a missed bar is reported and is no error.
 */
import { load, machineFacts } from "../machine.ts";
import type { Figure } from "../result.ts";
import { openRig } from "../rig.ts";
import { type Measured, runSuite, type SuiteOptions } from "../suite.ts";
import { backfill } from "./scenario/backfill.ts";
import { dueAtOnce, runsOfManyDags } from "./scenario/due.ts";
import { maps } from "./scenario/maps.ts";
import { pool } from "./scenario/pool.ts";
import { sharing } from "./scenario/sharing.ts";

async function measure(options: SuiteOptions, say: (text: string) => void): Promise<Measured> {
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!options.only.has(key)) return;
    say(`(${key}) ... load ${load().toFixed(1)}`);
    figures.push(...(await work()));
  };
  const rig = await openRig();
  const machine = await machineFacts(rig.database);
  try {
    await scenario("a", () => maps(rig, options));
    await scenario("b", () => runsOfManyDags(rig, options));
    await scenario("c", () => backfill(rig, options));
  } finally {
    await rig.stop();
  }
  await scenario("b", () => dueAtOnce(options));
  await scenario("d", async () => {
    const narrow = await openRig({ parallelism: 8 });
    try {
      return await pool(narrow, options);
    } finally {
      await narrow.stop();
    }
  });
  await scenario("e", () => sharing(options));
  return { machine, figures };
}

await runSuite("scheduling", ["a", "b", "c", "d", "e"], measure);

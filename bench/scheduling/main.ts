/**
 * `npm run bench:scheduling`: maps, DAGs that are due at once, backfills, pools. Prints a table and writes
 * bench/results/scheduling-<time>.json. As with `npm run bench`, a missed bar is reported and is no error.
 */
import { load, machineFacts } from "../machine.ts";
import { judged, print, type Results as SharedResults, store } from "../report.ts";
import type { Figure } from "../result.ts";
import { openRig } from "../rig.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { backfill } from "./scenario/backfill.ts";
import { dueAtOnce, runsOfManyDags } from "./scenario/due.ts";
import { maps } from "./scenario/maps.ts";
import { pool } from "./scenario/pool.ts";

interface Results extends SharedResults {
  readonly options: { readonly quick: boolean };
}

async function main(options: Options): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  const before = load();
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!(options.only as ReadonlySet<string>).has(key)) return;
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
  const results: Results = {
    at: new Date().toISOString(),
    machine,
    load: { before, after: load() },
    options: { quick: options.quick },
    figures: judged(figures),
  };
  const file = await store(results, "scheduling-");
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else print(results);
  say(`\nwritten to ${file}`);
}

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof Error) || !("code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")))
    throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}

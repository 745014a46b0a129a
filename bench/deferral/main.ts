/**
 * `npm run bench:deferral`: what does waiting cost? Prints tables and writes bench/results/deferral-<time>.json. As with
 * `npm run bench`, a missed bar is reported and is no error.
 */
import { load, machineFacts } from "../machine.ts";
import { judged, print, type Results as SharedResults, store } from "../report.ts";
import type { Figure } from "../result.ts";
import { longFile } from "./dags.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import { coldTriggers } from "./scenario/cold.ts";
import { deferring } from "./scenario/deferring.ts";
import { dueAtOnce } from "./scenario/due-at-once.ts";
import { hotTriggers } from "./scenario/hot.ts";
import { sharedTrigger } from "./scenario/shared.ts";
import { type SlotRow, slotTable, slotTime } from "./scenario/slot-time.ts";
import { openWaitingRig } from "./waiting-rig.ts";

interface Results extends SharedResults {
  readonly options: { readonly quick: boolean };
  /** Scenario (a), all lengths; slot-seconds. */
  readonly slotTime: readonly SlotRow[];
}

async function main(options: Options): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  const before = load();
  const started = performance.now();
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!(options.only as ReadonlySet<string>).has(key)) return;
    say(`(${key}) ... after ${Math.round((performance.now() - started) / 1_000)} s`);
    figures.push(...(await work()));
  };
  let rows: SlotRow[] = [];
  await scenario("a", async () => {
    const measured = await slotTime(options);
    rows = measured.rows;
    return measured.figures;
  });
  const rig = await openWaitingRig();
  const machine = await machineFacts(rig.database);
  try {
    const most = options.quick ? 2_000 : 10_000;
    await rig.publish({ "long.ts": longFile(1_000), "longer.ts": longFile(most) });
    await scenario("b", () => deferring(rig));
    await scenario("d", () => dueAtOnce(rig, 1_000, 5));
    await scenario("d", () => dueAtOnce(rig, most, 3));
    await scenario("f", () => sharedTrigger(rig, options));
  } finally {
    await rig.stop();
  }
  await scenario("c", () => hotTriggers(options));
  await scenario("e", () => coldTriggers(options));
  figures.sort((a, b) => (a.scenario < b.scenario ? -1 : a.scenario > b.scenario ? 1 : 0));
  const results: Results = {
    at: new Date().toISOString(),
    machine,
    load: { before, after: load() },
    options: { quick: options.quick },
    figures: judged(figures),
    slotTime: rows,
  };
  const file = await store(results, "deferral-");
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else {
    print(results);
    if (rows.length > 0) console.log(`\n${slotTable(rows)}`);
  }
  say(`\nwritten to ${file} after ${Math.round((performance.now() - started) / 1_000)} s`);
}

try {
  await main(readOptions(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof Error) || !("code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")))
    throw error;
  console.error(`${error.message}\n\n${USAGE}`);
  process.exitCode = 2;
}

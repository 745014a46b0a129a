/**
 * `npm run bench:deferral`: the cost of waiting. Prints tables and writes bench/results/deferral-<time>.json. As with
 * `npm run bench`, a missed bar is reported and is no error.
 */
import { machineFacts } from "../machine.ts";
import type { Figure } from "../result.ts";
import { type Measured, runSuite, type SuiteOptions } from "../suite.ts";
import { longFile } from "./dags.ts";
import { coldTriggers } from "./scenario/cold.ts";
import { deferring } from "./scenario/deferring.ts";
import { dueAtOnce } from "./scenario/due-at-once.ts";
import { hotTriggers } from "./scenario/hot.ts";
import { sharedTrigger } from "./scenario/shared.ts";
import { type SlotRow, slotTable, slotTime } from "./scenario/slot-time.ts";
import { withWaitingRig } from "./waiting-rig.ts";

async function measure(options: SuiteOptions, say: (text: string) => void): Promise<Measured> {
  const started = performance.now();
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!options.only.has(key)) return;
    say(`(${key}) ... after ${Math.round((performance.now() - started) / 1_000)} s`);
    figures.push(...(await work()));
  };
  let rows: SlotRow[] = [];
  await scenario("a", async () => {
    const measured = await slotTime(options);
    rows = measured.rows;
    return measured.figures;
  });
  const machine = await withWaitingRig(async (rig) => {
    const facts = await machineFacts(rig.database);
    const most = options.quick ? 2_000 : 10_000;
    await rig.publish({ "long.ts": longFile(1_000), "longer.ts": longFile(most) });
    await scenario("b", () => deferring(rig));
    await scenario("d", () => dueAtOnce(rig, 1_000, 5));
    await scenario("d", () => dueAtOnce(rig, most, 3));
    await scenario("f", () => sharedTrigger(rig, options));
    return facts;
  });
  await scenario("c", () => hotTriggers(options));
  await scenario("e", () => coldTriggers(options));
  const table = rows.length > 0 ? slotTable(rows) : null;
  // Scenario (a), all lengths; slot-seconds.
  return { machine, figures, more: { facts: { slotTime: rows }, table } };
}

await runSuite("deferral", ["a", "b", "c", "d", "e", "f"], measure);

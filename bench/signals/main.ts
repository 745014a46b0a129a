/**
 * `npm run bench:signals`: how many signals, how soon? Prints a table and writes bench/results/signals-<time>.json. As
 * with `npm run bench`, a missed bar is reported and is no error.
 */
import { load, machineFacts } from "../machine.ts";
import { judged, print, type Results as SharedResults, store } from "../report.ts";
import type { Figure } from "../result.ts";
import { type Options, readOptions, USAGE } from "./options.ts";
import {
  besideTasks,
  betweenProcesses,
  inOneProcess,
  overNetwork,
  toManyListeners,
  withoutNotify,
} from "./scenario/latency.ts";
import { notifyCost } from "./scenario/notify.ts";
import { startedByRules } from "./scenario/rules.ts";
import { stepsBetweenProcesses } from "./scenario/steps.ts";
import { throughput } from "./scenario/throughput.ts";
import { openStage } from "./stage.ts";

interface Results extends SharedResults {
  readonly options: { readonly quick: boolean };
}

async function main(options: Options): Promise<void> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  const before = load();
  const started = performance.now();
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!(options.only as ReadonlySet<string>).has(key)) return;
    say(
      `(${key}) ... after ${Math.round((performance.now() - started) / 1_000)} s, load ${load().toFixed(1)}`,
    );
    const from = load();
    const found = await work();
    // Of others, too: what was measured while they were at work says little of this.
    const loads = `load ${from.toFixed(1)} to ${load().toFixed(1)}`;
    figures.push(...found.map((figure) => ({ ...figure, note: `${figure.note}; ${loads}` })));
  };
  const stage = await openStage();
  const machine = await machineFacts(stage.database);
  try {
    // Latencies first: the load that throughput leaves behind would be in them.
    await scenario("b", () => inOneProcess(stage, options));
    await scenario("c", () => betweenProcesses(stage, options));
    await scenario("c", () => overNetwork(stage, "grpc", options));
    await scenario("c", () => overNetwork(stage, "http", options));
    await scenario("c", () => withoutNotify(stage, options));
    await scenario("c", () => toManyListeners(stage, options));
    await scenario("a", () => throughput(stage, options));
    await scenario("d", () => notifyCost(stage, options));
  } finally {
    await stage.stop();
  }
  await scenario("c", () => besideTasks(options));
  await scenario("e", () => stepsBetweenProcesses(options));
  await scenario("f", () => startedByRules(options));
  figures.sort((a, b) => (a.scenario < b.scenario ? -1 : a.scenario > b.scenario ? 1 : 0));
  const results: Results = {
    at: new Date().toISOString(),
    machine,
    load: { before, after: load() },
    options: { quick: options.quick },
    figures: judged(figures),
  };
  const file = await store(results, "signals-");
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else print(results);
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

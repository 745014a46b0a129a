/**
 * `npm run bench:signals`: rate and latency of signals. Prints a table and writes bench/results/signals-<time>.json. As
 * with `npm run bench`, a missed bar is reported and is no error.
 */
import { load, machineFacts } from "../machine.ts";
import type { Figure } from "../result.ts";
import { type Measured, runSuite, type SuiteOptions } from "../suite.ts";
import { burstOfStarts } from "./scenario/burst.ts";
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

async function measure(options: SuiteOptions, say: (text: string) => void): Promise<Measured> {
  const started = performance.now();
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!options.only.has(key)) return;
    say(
      `(${key}) ... after ${Math.round((performance.now() - started) / 1_000)} s, load ${load().toFixed(1)}`,
    );
    const from = load();
    const found = await work();
    // Includes other work on the machine: figures measured under foreign load mean little.
    const loads = `load ${from.toFixed(1)} to ${load().toFixed(1)}`;
    figures.push(...found.map((figure) => ({ ...figure, note: `${figure.note}; ${loads}` })));
  };
  const stage = await openStage();
  const machine = await machineFacts(stage.database);
  try {
    // Latencies first: load that throughput leaves behind would affect them.
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
  await scenario("g", () => burstOfStarts(options));
  return { machine, figures };
}

await runSuite("signals", ["a", "b", "c", "d", "e", "f", "g"], measure);

/**
 * `npm run bench:web`: the web UI of a real standalone in a real browser. Prints a table and writes bench/results/web-<time>.json.
 * As with `npm run bench`, a missed bar is reported and is no error.
 */
import { load, machineFacts } from "../machine.ts";
import type { Figure } from "../result.ts";
import { type Measured, runSuite, type SuiteOptions } from "../suite.ts";
import { layeredFile, slowFile } from "./dags.ts";
import { manyTabs, SLOW_DAG, stateToScreen, TABS_DAG } from "./scenario/changes.ts";
import { graph } from "./scenario/graph.ts";
import { GRID_DAG, grid, WIDE_DAG } from "./scenario/grid.ts";
import { initialJavaScript } from "./scenario/javascript.ts";
import { BUSY_DAG, BUSY_TASKS, longTasks } from "./scenario/load.ts";
import { LOG_FILE, logs } from "./scenario/logs.ts";
import { tenMillion } from "./scenario/ten-million.ts";
import { TIMELINE_DAG, TIMELINE_TASKS, timeline } from "./scenario/timeline.ts";
import { Stage } from "./stage.ts";

async function measure(options: SuiteOptions, say: (text: string) => void): Promise<Measured> {
  const figures: Figure[] = [];
  const scenario = async (key: string, work: () => Promise<Figure[]>) => {
    if (!options.only.has(key)) return;
    say(`(${key}) ... load ${load().toFixed(1)}`);
    figures.push(...(await work()));
  };
  const stage = await Stage.open({
    "grid.ts": layeredFile(GRID_DAG, 500),
    "wide.ts": layeredFile(WIDE_DAG, 2_000),
    "logs.ts": LOG_FILE,
    "timeline.ts": layeredFile(TIMELINE_DAG, TIMELINE_TASKS),
    "slow.ts": slowFile(SLOW_DAG, options.quick ? 8 : 25),
    "tabs.ts": layeredFile(TABS_DAG, 500),
    "busy.ts": layeredFile(BUSY_DAG, BUSY_TASKS),
  });
  const machine = await machineFacts(stage.database);
  try {
    await scenario("a", () => initialJavaScript(stage));
    await scenario("b", () => grid(stage, options));
    await scenario("c", () => graph(stage, options));
    await scenario("d", () => logs(stage, options));
    await scenario("e", () => timeline(stage));
    await scenario("f", () => stateToScreen(stage));
    await scenario("g", () => longTasks(stage, options, say));
    await scenario("h", () => manyTabs(stage));
  } finally {
    await stage.close();
  }
  await scenario("i", () => tenMillion(options, say));
  return { machine, figures };
}

await runSuite("web", ["a", "b", "c", "d", "e", "f", "g", "h", "i"], measure);

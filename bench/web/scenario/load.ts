/** (g) Every page while 1,000 tasks per second change their states: the longest task of the main thread. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../../result.ts";
import type { SuiteOptions } from "../../suite.ts";
import { addRuns, Changes } from "../history.ts";
import { pagesOf } from "../pages.ts";
import type { Stage } from "../stage.ts";
import { traced } from "../trace.ts";

export const BUSY_DAG = "busy";
export const BUSY_TASKS = 500;
const RUNS = 50;
const RUNNING = 4;
const BATCH = 100;
const BATCH_MS = 100;
/** Until it has loaded. */
const LOAD_MS = 2_000;

export async function longTasks(
  stage: Stage,
  { quick }: SuiteOptions,
  say: (text: string) => void,
): Promise<Figure[]> {
  await addRuns(stage.database, BUSY_DAG, { runs: RUNS, running: RUNNING });
  const load = startLoad(stage);
  const figures: Figure[] = [];
  try {
    for (const path of pagesOf(BUSY_DAG, `r${RUNS}`)) {
      const before = load.changed();
      const started = performance.now();
      const value = await stage.visit(path, async (page) => {
        await sleep(LOAD_MS);
        const trace = await traced(stage, page, async () => {
          await page.evaluate('performance.mark("began")');
          await sleep(quick ? 1_500 : 4_000);
          await page.evaluate('performance.mark("shown")');
        });
        return trace.longest(trace.marks("began")[0], trace.marks("shown")[0]);
      });
      const rate = (load.changed() - before) / ((performance.now() - started) / 1_000);
      say(`  ${path}: ${value.toFixed(0)} ms`);
      figures.push({
        scenario: "g",
        what: `longest task of ${path}`,
        value,
        unit: "ms",
        bar: { atMost: 50 },
        note: `${Math.round(rate)} changes/s`,
      });
    }
  } finally {
    await load.stop();
  }
  return figures;
}

/** One batch after the other over the tasks of the running runs, at its own pace. */
function startLoad(stage: Stage): { changed(): number; stop(): Promise<void> } {
  const changes = new Changes(stage.database);
  let isStopped = false;
  let batches = 0;
  const began = performance.now();
  const work = (async () => {
    while (!isStopped) {
      const [round, place] = [Math.floor(batches / RUNNING), batches % RUNNING];
      const from = (round * BATCH) % BUSY_TASKS;
      const state = Math.floor((round * BATCH) / BUSY_TASKS) % 2 === 0 ? "running" : "success";
      await changes.move({ dagId: BUSY_DAG, runId: `r${RUNS - place}`, state, from, count: BATCH });
      batches += 1;
      await sleep(Math.max(0, began + batches * BATCH_MS - performance.now()));
    }
  })();
  return {
    changed: () => batches * BATCH,
    async stop() {
      isStopped = true;
      await work;
      await changes.close();
    },
  };
}

/** (e) The timeline of a run with 10,000 intervals. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import { addAttempts, addRuns } from "../history.ts";
import type { Stage } from "../stage.ts";
import { traced } from "../trace.ts";

export const TIMELINE_DAG = "timeline";
/** Each try of a task has at least one interval of work. */
export const TIMELINE_TASKS = 1_000;
const TRIES = 10;
const STEPS = 80;
const CANVAS = `document.querySelector("main canvas")`;

export async function timeline(stage: Stage): Promise<Figure[]> {
  await addRuns(stage.database, TIMELINE_DAG, { runs: 1 });
  await addAttempts(stage.database, TIMELINE_DAG, TRIES - 1);
  return stage.visit(`/dags/${TIMELINE_DAG}/runs/r1`, async (page) => {
    const shown = await page.evaluate<number>(`globalThis.bench.shown(() => (${CANVAS}?.width ?? 0) > 300)`);
    await sleep(1_000);
    const trace = await traced(
      stage,
      page,
      async () => {
        await page.evaluate(`(async () => {
          const scroller = ${CANVAS}.closest(".overflow-auto, .overflow-y-auto");
          for (let step = 0; step < ${STEPS}; step++) {
            await new Promise(requestAnimationFrame);
            performance.mark("step");
            scroller.scrollTop += 120;
          }
        })()`);
      },
      "step",
    );
    const marks = trace.marks("step");
    const work = marks.slice(1).map((mark, at) => trace.busy(marks[at] ?? mark, mark));
    return [
      {
        scenario: "e",
        what: "timeline of 10,000 intervals: page load to paint",
        value: shown,
        unit: "ms",
      },
      {
        scenario: "e",
        what: "timeline of 10,000 intervals: scroll by 120 px, main thread per frame, p95",
        value: quantile(work, 0.95),
        unit: "ms",
        bar: { atMost: 16 },
        note: `p50 ${digits(median(work))} ms`,
      },
    ];
  });
}

/** (b) The grid of a DAG with 500 tasks and 100 runs: its data, its first paint, and what moves in it. */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Page } from "../../../packages/web/test/support/browser.ts";
import type { Figure } from "../../result.ts";
import { median, quantile } from "../../statistics.ts";
import type { SuiteOptions } from "../../suite.ts";
import { addRuns, Changes } from "../history.ts";
import type { Stage } from "../stage.ts";
import { type Trace, traced } from "../trace.ts";

export const GRID_DAG = "grid";
export const WIDE_DAG = "wide";
const RUNS = 100;
const TASKS = 500;

const HAS_RUNS = adhoc("SELECT FROM dag_run WHERE dag_id = $1 LIMIT 1");
const SHOWN = "globalThis.bench.shown(globalThis.bench.cells)";

export async function grid(stage: Stage, { quick }: SuiteOptions): Promise<Figure[]> {
  await addGridRuns(stage);
  const rounds = quick ? 3 : 15;
  return [
    ...(await data(stage, rounds)),
    ...(await firstPaint(stage, rounds)),
    await navigation(stage, WIDE_DAG, { rounds: Math.ceil(rounds / 2), atMost: 1_000 }),
    ...(await stage.visit(`/dags/${GRID_DAG}`, async (page) => {
      await page.evaluate(SHOWN);
      await sleep(1_000);
      return [
        await scroll(stage, page),
        await hover(stage, page),
        ...(await change(stage, page, 2 * rounds)),
      ];
    })),
  ];
}

/** Once; the graph shows the same DAGs. */
export async function addGridRuns(stage: Stage): Promise<void> {
  if ((await stage.database.rows(HAS_RUNS, [GRID_DAG])).length > 0) return;
  await addRuns(stage.database, GRID_DAG, { runs: RUNS, running: 1 });
  await addRuns(stage.database, WIDE_DAG, { runs: RUNS });
}

async function data(stage: Stage, rounds: number): Promise<Figure[]> {
  const path = `/ui/dags/${GRID_DAG}/grid`;
  await stage.get(path);
  const times: number[] = [];
  for (let n = 0; n < 3 * rounds; n++) times.push((await stage.get(path)).ms);
  const response = await stage.get(path);
  return [
    {
      scenario: "b",
      what: `grid ${RUNS} x ${TASKS}: answer of the server, p95`,
      value: quantile(times, 0.95),
      unit: "ms",
      bar: { atMost: 150 },
      note: `p50 ${median(times).toFixed(0)} ms`,
    },
    {
      scenario: "b",
      what: `grid ${RUNS} x ${TASKS}: compressed answer`,
      value: response.sent / 1_000,
      unit: "KB",
      bar: { atMost: 150 },
      note: `${Math.round(response.bytes / 1_000)} KB raw`,
    },
  ];
}

/** Each time in a new profile, in a page that has loaded another one before: as a user gets there. */
async function firstPaint(stage: Stage, rounds: number): Promise<Figure[]> {
  const traces: Trace[] = [];
  const elapsed: number[] = [];
  for (let n = 0; n < rounds; n++)
    await stage.visit("/dags", async (page) => {
      await page.getByRole("link", { name: GRID_DAG, exact: true }).first().waitFor();
      await sleep(1_000);
      const trace = await traced(stage, page, async () => {
        await page.getByRole("link", { name: GRID_DAG, exact: true }).first().click();
        await page.evaluate(SHOWN);
      });
      traces.push(trace);
      elapsed.push(trace.sinceClick());
    });
  const work = traces.map((trace) => trace.busy(trace.answered("/grid")[0] ?? Number.NaN, ends(trace)));
  return [
    {
      scenario: "b",
      what: `grid ${RUNS} x ${TASKS}: main thread from data to first paint, p95`,
      value: quantile(work, 0.95),
      unit: "ms",
      bar: { atMost: 100 },
      note: `p50 ${median(work).toFixed(0)} ms, longest task ${median(traces.map((trace) => trace.longest(trace.answered("/grid")[0]))).toFixed(0)} ms`,
    },
    {
      scenario: "b",
      what: `grid ${RUNS} x ${TASKS}: navigation to paint, p95`,
      value: quantile(elapsed, 0.95),
      unit: "ms",
      bar: { atMost: 500 },
      note: `p50 ${median(elapsed).toFixed(0)} ms, from the list of DAGs, the code of the page not loaded`,
    },
  ];
}

async function navigation(
  stage: Stage,
  dagId: string,
  { atMost, rounds }: { readonly atMost: number; readonly rounds: number },
): Promise<Figure> {
  const times: number[] = [];
  for (let n = 0; n < rounds; n++)
    times.push(await stage.visit(`/dags/${dagId}`, (page) => page.evaluate<number>(SHOWN)));
  return {
    scenario: "b",
    what: `grid ${RUNS} x 2,000: page load to paint, p95`,
    value: quantile(times, 0.95),
    unit: "ms",
    bar: { atMost },
    note: `p50 ${median(times).toFixed(0)} ms, empty cache`,
  };
}

const ends = (trace: Trace) => trace.marks("shown").at(-1) ?? Number.NaN;

const STEPS = 80;

/** 120 px per frame, down and up. */
async function scroll(stage: Stage, page: Page): Promise<Figure> {
  const trace = await traced(
    stage,
    page,
    async () => {
      await page.evaluate(`(async () => {
        const scroller = document.querySelector('[role="grid"]').closest(".overflow-auto");
        for (let step = 0; step < ${STEPS}; step++) {
          await new Promise(requestAnimationFrame);
          performance.mark("step");
          scroller.scrollTop += step < ${STEPS / 2} ? 120 : -120;
        }
      })()`);
    },
    "step",
  );
  const marks = trace.marks("step");
  const work = marks.slice(1).map((mark, at) => trace.busy(marks[at] ?? mark, mark));
  return {
    scenario: "b",
    what: "grid: scroll by 120 px, main thread per frame, p95",
    value: quantile(work, 0.95),
    unit: "ms",
    bar: { atMost: 16 },
    note: `p50 ${median(work).toFixed(1)} ms`,
  };
}

async function hover(stage: Stage, page: Page): Promise<Figure> {
  const trace = await traced(
    stage,
    page,
    async () => {
      for (let step = 0; step < STEPS; step++) {
        await page.mouse.move(500 + step * 9, 350 + (step % 20) * 20);
        await sleep(40);
      }
      await page.evaluate('performance.mark("shown")');
    },
    "shown",
  );
  const moves = trace.dispatched("pointermove");
  const work = moves.map((at) => trace.busy(at - 1, at + 34));
  return {
    scenario: "b",
    what: "grid: hover, main thread per move, p95",
    value: quantile(work, 0.95),
    unit: "ms",
    bar: { atMost: 8 },
    note: `p50 ${median(work).toFixed(1)} ms of ${moves.length} moves, with the frame`,
  };
}

/** All tasks of the running run change; everything that the page does until 300 ms after it has their states. */
async function change(stage: Stage, page: Page, rounds: number): Promise<Figure[]> {
  const changes = new Changes(stage.database);
  const work: number[] = [];
  try {
    for (let n = 0; n < rounds; n++) {
      const trace = await traced(stage, page, async () => {
        const answer = page.waitForResponse((response) => response.url().includes("/grid/runs/"));
        const state = n % 2 === 0 ? "running" : "success";
        await changes.move({ dagId: GRID_DAG, runId: `r${RUNS}`, state, from: 0, count: TASKS });
        await answer;
        await sleep(300);
        await page.evaluate('performance.mark("shown")');
      });
      const from = trace.answered("/grid/runs/")[0] ?? Number.NaN;
      work.push(trace.busy(from - 1, from + 150));
    }
  } finally {
    await changes.close();
  }
  return [
    {
      scenario: "b",
      what: `grid: one run's ${TASKS} states change, main thread, p95`,
      value: quantile(work, 0.95),
      unit: "ms",
      bar: { atMost: 10 },
      note: `p50 ${median(work).toFixed(1)} ms`,
    },
  ];
}

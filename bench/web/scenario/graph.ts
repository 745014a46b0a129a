/** (c) The graph of a DAG: the first time in a browser, and again when its layout is known. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import type { SuiteOptions } from "../../suite.ts";
import type { Stage } from "../stage.ts";
import { type Trace, traced } from "../trace.ts";
import { addGridRuns, GRID_DAG, WIDE_DAG } from "./grid.ts";

const SHOWN = `globalThis.bench.shown(() => document.querySelector(".react-flow__node button") !== null)`;

export async function graph(stage: Stage, { quick }: SuiteOptions): Promise<Figure[]> {
  await addGridRuns(stage);
  const rounds = quick ? 2 : 7;
  return [
    ...(await oneGraph(stage, { dagId: GRID_DAG, nodes: 500, cold: 1_500, cached: 400, rounds })),
    ...(await oneGraph(stage, {
      dagId: WIDE_DAG,
      nodes: 2_000,
      cold: 4_000,
      cached: 1_000,
      rounds: Math.ceil(rounds / 2),
    })),
  ];
}

interface Subject {
  readonly dagId: string;
  readonly nodes: number;
  readonly cold: number;
  readonly cached: number;
  readonly rounds: number;
}

async function oneGraph(stage: Stage, subject: Subject): Promise<Figure[]> {
  const { dagId, nodes, rounds } = subject;
  const cold: Trace[] = [];
  const cached: Trace[] = [];
  for (let n = 0; n < rounds; n++) {
    const profile = await stage.profile();
    // From the grid, as a user comes: the time is that of the graph, not of the data that both show.
    const measure = () =>
      stage.visit(
        `/dags/${dagId}`,
        async (page) => {
          await page.evaluate("globalThis.bench.shown(globalThis.bench.cells)");
          await sleep(1_000);
          return traced(stage, page, async () => {
            await page.getByRole("radio", { name: "Graph", exact: true }).click();
            await page.evaluate(SHOWN);
          });
        },
        profile,
      );
    cold.push(await measure());
    cached.push(await measure());
    await profile.close();
  }
  return [
    timeFigure(`graph of ${nodes} nodes, first time, p95`, cold, subject.cold),
    timeFigure(`graph of ${nodes} nodes, layout cached, p95`, cached, subject.cached),
    {
      scenario: "c",
      what: `graph of ${nodes} nodes, first time: longest task of the main thread`,
      value: median(cold.map((trace) => trace.longest(trace.dispatched("click")[0]))),
      unit: "ms",
      note: "median of the rounds",
    },
  ];
}

function timeFigure(what: string, traces: readonly Trace[], atMost: number): Figure {
  const times = traces.map((trace) => trace.sinceClick());
  const value = quantile(times, 0.95);
  const note = `p50 ${digits(median(times))} ms, from the click to the paint`;
  return { scenario: "c", what, value, unit: "ms", bar: { atMost }, note };
}

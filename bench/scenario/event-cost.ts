/**
 * What one event costs the scheduler when its run has 10, 1,000 or 100,000 tasks. The real scheduler on the real
 * database drives the run; only the executor is a stand-in, which says "succeeded" at once, one task at a time, so that
 * every event is a batch of its own. The run is made of chains of ten: each end makes exactly one other task ready,
 * while all the rest of the run is there to be stumbled over.
 */
import { dag } from "@tradewind/sdk";
import { PROGRAM } from "@tradewind/sdk/program";
import type { Executor, ExecutorEvent, Workload } from "../../packages/engine/src/execute/contract.ts";
import { planNext } from "../../packages/engine/src/schedule/planner.ts";
import { publishFiles } from "../../packages/engine/src/store/dag-publish.ts";
import type { Figure } from "../result.ts";
import { openBareScheduler } from "../rig.ts";
import { digits, median, min } from "../statistics.ts";

const SIZES = [10, 1_000, 100_000];
/** Events per measured slice. */
const SLICE = 200;

export async function eventCost(options: { readonly quick: boolean }): Promise<Figure[]> {
  const slices = options.quick ? 3 : 8;
  const costs: { size: number; cpuUs: number; wallUs: number }[] = [];
  for (const size of SIZES) costs.push({ size, ...(await costOf(size, slices)) });
  const small = costs[0]?.cpuUs ?? Number.NaN;
  const figures = costs.map(
    ({ size, cpuUs, wallUs }): Figure => ({
      scenario: "e",
      what: `scheduler CPU per event, ${digits(size)} tasks in the run`,
      value: cpuUs,
      unit: "us",
      note: `${digits(wallUs)} us from event to event, commit included`,
    }),
  );
  const large = costs.at(-1)?.cpuUs ?? Number.NaN;
  return [
    ...figures,
    { scenario: "e", what: "100,000 tasks against 10: flat", value: large / small, unit: "x", bar: { atMost: 1.5 } },
  ];
}

async function costOf(size: number, slices: number): Promise<{ cpuUs: number; wallUs: number }> {
  const executor = new InstantExecutor();
  const bench = await openBareScheduler(executor);
  try {
    const manifest = chains(size)[PROGRAM].describe();
    const publication = {
      file: "bench.ts",
      bundle: { hash: `bench-${size}`, code: "", sourceMap: null },
      source: "",
      manifests: [manifest],
    };
    await publishFiles(bench.database, [publication], { isPausedAtCreation: false, plan: planNext });
    const cpu: number[] = [];
    const wall: number[] = [];
    // A small run is over before a slice is full: then the next one begins. The first slice warms up.
    for (let n = -1; n < slices; n++) {
      await bench.ensureRun("bench", size);
      const started = performance.now();
      const before = process.cpuUsage();
      const events = await executor.allow(SLICE, () => bench.ensureRun("bench", size));
      const used = process.cpuUsage(before);
      if (n < 0) continue;
      cpu.push((used.user + used.system) / events);
      wall.push(((performance.now() - started) * 1_000) / events);
    }
    return { cpuUs: Math.min(median(cpu), min(cpu) * 1.5), wallUs: median(wall) };
  } finally {
    await bench.stop();
  }
}

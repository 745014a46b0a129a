/**
 * The cost of one event for the scheduler when its run has 10, 1,000 or 100,000 tasks. The real scheduler on the real
 * database drives the run; only the executor is a stand-in that reports success at once, one task at a time, so that
 * every event is a separate batch. The run consists of chains of ten: each end makes exactly one other task ready, while
 * the rest of the run stays loaded.
 */
import { dag } from "@tradewind/sdk";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { PROGRAM } from "@tradewind/sdk/program";
import type { Assignment, Executor, ExecutorEvent } from "../../packages/engine/src/execute/contract.ts";
import { planNext } from "../../packages/engine/src/model/calendar/planner.ts";
import { publishFiles } from "../../packages/engine/src/store/dag/dag-publish.ts";
import type { Figure } from "../result.ts";
import { bundleOf, openBareScheduler } from "../rig.ts";
import { digits, median } from "../statistics.ts";

const SIZES = [10, 1_000, 100_000];
/** Minimum number of tasks, in as many runs as needed: no run ends during the measurement. */
const TASKS = 1_000;
const SLICE = 100;
const SLICES = 7;

export async function eventCost(): Promise<Figure[]> {
  const costs: { size: number; cpuUs: number; wallUs: number }[] = [];
  for (const size of SIZES) costs.push({ size, ...(await costOf(size)) });
  const figures = costs.map(
    ({ size, cpuUs, wallUs }): Figure => ({
      scenario: "e",
      what: `scheduler CPU per event, ${size.toLocaleString("en-US")} tasks in the run`,
      value: cpuUs,
      unit: "us",
      note: `${digits(wallUs)} us from event to event, commit included`,
    }),
  );
  const [first, last] = [costs[0]?.cpuUs ?? Number.NaN, costs.at(-1)?.cpuUs ?? Number.NaN];
  const what = "the same, 100,000 tasks against 10: flat";
  return [...figures, { scenario: "e", what, value: last / first, unit: "x", bar: { atMost: 1.5 } }];
}

async function costOf(size: number): Promise<{ cpuUs: number; wallUs: number }> {
  const executor = new InstantExecutor();
  const bench = await openBareScheduler(executor);
  try {
    const bundle = bundleOf(`export const size = ${size};`);
    const publication = { file: "bench.ts", bundle, source: "", manifests: [chains(size)] };
    await publishFiles(bench.database, [publication], { isPausedAtCreation: false, plan: planNext });
    await bench.createRuns(Array.from({ length: Math.max(1, TASKS / size) }, () => "bench"));
    const cpu: number[] = [];
    const wall: number[] = [];
    // The first slices claim the runs and compile the code.
    for (let slice = -1; slice < SLICES; slice++) {
      const before = process.cpuUsage();
      const started = performance.now();
      await executor.allow(SLICE);
      const used = process.cpuUsage(before);
      if (slice < 0) continue;
      cpu.push((used.user + used.system) / SLICE);
      wall.push(((performance.now() - started) * 1_000) / SLICE);
    }
    return { cpuUs: median(cpu), wallUs: median(wall) };
  } finally {
    await bench.stop();
  }
}

function chains(size: number): DagManifest {
  const built = dag("bench", { maxActiveRuns: 1_000, maxActiveTasks: size }, (d) => {
    for (let chain = 0; chain < size / 10; chain++) {
      let last = d.task(`c${chain}_0`, {}, () => {});
      for (let n = 1; n < 10; n++) last = d.task(`c${chain}_${n}`, { after: last }, () => {});
    }
  });
  return built[PROGRAM].describe();
}

/** Accepts one attempt at a time and ends as many as allowed. */
class InstantExecutor implements Executor {
  readonly name = "local";
  readonly type = "local";
  /** More than one only at the start, when the first dispatches wait for the bundle. */
  readonly #held: string[] = [];
  #report: (event: ExecutorEvent) => void = () => {};
  #left = 0;
  #onDone: () => void = () => {};

  /** Resolves when this many have ended, and the next one was submitted: their batches are stored. */
  async allow(count: number): Promise<void> {
    this.#left = count;
    const done = new Promise<void>((resolve) => {
      this.#onDone = resolve;
    });
    this.#next();
    await done;
  }

  async start(report: (event: ExecutorEvent) => void): Promise<void> {
    this.#report = report;
  }

  submit(assignments: readonly Assignment[]): void {
    this.#held.push(...assignments.map(({ id }) => id));
    setImmediate(() => this.#next());
  }

  freeSlots(): number {
    return this.#held.length === 0 ? 1 : 0;
  }

  slots() {
    return { slots: null, free: 1_000 };
  }

  async adopt(): Promise<ReadonlySet<string>> {
    return new Set();
  }

  cancel(): void {}
  async stop(): Promise<void> {}

  #next(): void {
    if (this.#held.length === 0) return;
    if (this.#left === 0) {
      this.#onDone();
      return;
    }
    this.#left--;
    const attempt = this.#held.shift() ?? "";
    const outcome = { kind: "success", output: undefined, skip: [] } as const;
    this.#report({ type: "started", attempt, at: Date.now(), pid: 1 });
    this.#report({ type: "ended", attempt, at: Date.now(), outcome });
    setImmediate(() => this.#next());
  }
}

/**
 * `npm run bench:executors`: no-op tasks on the local executor (warm and fresh processes) and on the queue executor with one
 * and four workers, all on one machine. Prints a table and writes bench/results/executors-<time>.json. The shapes are measured
 * by turns, so that the load of the machine affects all of them alike.
 */
import { adhoc } from "../../packages/engine/src/store/database/database.ts";
import { machineFacts } from "../machine.ts";
import { type CpuTimes, cpuSum } from "../process-tree.ts";
import type { Figure } from "../result.ts";
import { openRig, type Rig } from "../rig.ts";
import { chainFile, independentFile } from "../shapes.ts";
import { median, quantile } from "../statistics.ts";
import { type Measured, runSuite, type SuiteOptions } from "../suite.ts";
import { openFleet } from "./fleet.ts";

/** Slots together: of the local executor, and of all workers. */
const SLOTS = 8;
const CHAIN = 100;

interface Subject {
  readonly name: string;
  readonly rig: Rig;
  stop(): Promise<void>;
}

async function subjects(): Promise<Subject[]> {
  const local = await openRig({ parallelism: SLOTS });
  const one = await openFleet(1, SLOTS);
  const four = await openFleet(4, SLOTS / 4);
  return [
    { name: "local", rig: local, stop: () => local.stop() },
    { name: "queue, 1 worker", rig: one.rig, stop: one.stop },
    { name: "queue, 4 workers", rig: four.rig, stop: four.stop },
  ];
}

async function measure(options: SuiteOptions, say: (text: string) => void): Promise<Measured> {
  const all = await subjects();
  const machine = await machineFacts((all[0] as Subject).rig.database);
  const figures: Figure[] = [];
  const tasks = options.quick ? 500 : 5_000;
  const rounds = options.quick ? 2 : 5;
  try {
    for (const { rig } of all) {
      await rig.publish({
        "wide.ts": independentFile("wide", tasks),
        "chain.ts": chainFile("chain", CHAIN),
        "one.ts": independentFile("one", 1),
      });
      await rig.run(["chain"]);
      await rig.run(["wide"]);
    }
    if (options.only.has("a")) figures.push(...(await throughput(all, { rounds, tasks, say })));
    if (options.only.has("b")) figures.push(...(await chains(all, { rounds: 2 * rounds, say })));
    if (options.only.has("c"))
      figures.push(...(await latencies(all, { runs: options.quick ? 100 : 1_000, say })));
  } finally {
    for (const { stop } of all) await stop();
  }
  if (options.only.has("d")) figures.push(await fresh(options));
  return { machine, figures };
}

interface Rounds {
  readonly rounds: number;
  readonly say: (text: string) => void;
}

/** (a) Independent tasks: rate, CPU of all processes, and the ratio to the local executor in the same round. */
async function throughput(
  all: readonly Subject[],
  { rounds, say, tasks }: Rounds & { readonly tasks: number },
): Promise<Figure[]> {
  const rates = new Map<Subject, number[]>(all.map((each) => [each, []]));
  const cpus = new Map<Subject, CpuTimes[]>(all.map((each) => [each, []]));
  for (let round = 1; round <= rounds; round++) {
    say(`(a) round ${round} of ${rounds}`);
    for (const each of all) {
      const { cpu, ms } = await each.rig.run(["wide"]);
      rates.get(each)?.push((tasks * 1_000) / ms);
      cpus.get(each)?.push(cpu);
    }
  }
  const [local] = all as [Subject];
  return all.flatMap((each) => {
    const ratios = (rates.get(each) ?? []).map((rate, at) => rate / (rates.get(local)?.[at] ?? 1));
    const of = `${tasks} independent no-ops, ${each.name}`;
    const isRemote = each !== local;
    return [
      {
        scenario: "a",
        what: of,
        value: median(rates.get(each) ?? []),
        unit: "tasks/s",
        ...(isRemote && { bar: { atLeast: 2_000 } }),
      },
      cpuFigure(of, tasks, cpus.get(each) ?? []),
      ...(isRemote
        ? [
            {
              scenario: "a",
              what: `${of}: of the local rate`,
              value: median(ratios),
              unit: "x",
              bar: { atLeast: 0.5 },
            },
          ]
        : []),
    ];
  });
}

/** Depends less on other work on the machine than the rate. */
function cpuFigure(of: string, tasks: number, rounds: readonly CpuTimes[]): Figure {
  const perTask = (cpu: (times: CpuTimes) => number) =>
    median(rounds.map((times) => (cpu(times) * 1_000) / tasks));
  const [main, postgres, children] = [
    perTask((times) => times.main),
    perTask((times) => times.postgres),
    perTask((times) => times.children),
  ].map(Math.round);
  return {
    scenario: "a",
    what: `${of}: CPU of all processes`,
    value: perTask(cpuSum),
    unit: "us/task",
    note: `scheduler and API ${main}, PostgreSQL ${postgres}, task processes, workers and Redis ${children}`,
  };
}

/** (b) From the end of one task to the end of the next. */
async function chains(all: readonly Subject[], { rounds, say }: Rounds): Promise<Figure[]> {
  const steps = new Map<Subject, number[]>(all.map((each) => [each, []]));
  for (let round = 1; round <= rounds; round++) {
    say(`(b) round ${round} of ${rounds}`);
    for (const each of all) steps.get(each)?.push((await each.rig.run(["chain"])).ms / CHAIN);
  }
  return all.map((each, at) => ({
    scenario: "b",
    what: `chain of ${CHAIN} no-ops, ${each.name}`,
    value: median(steps.get(each) ?? []),
    unit: "ms/task",
    ...(at > 0 && { bar: { atMost: 5 } }),
  }));
}

const WAITS = adhoc(
  `SELECT 1000 * extract(epoch FROM started_at - queued_at)::float8 AS ms FROM task_instance WHERE dag_run_id = ANY($1)`,
);

/** (c) From the queued task to its code, with 100 new runs of one task per second. */
async function latencies(
  all: readonly Subject[],
  { runs, say }: { readonly runs: number; readonly say: (text: string) => void },
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const { name, rig } of all) {
    say(`(c) ${name}`);
    const ids: number[] = [];
    const began = performance.now();
    for (let at = 0; at < runs; at++) {
      const wait = began + at * 10 - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      ids.push(...(await rig.create(["one"])));
    }
    await rig.ended(ids);
    const waits = (await rig.database.rows<{ ms: number }>(WAITS, [ids])).map(({ ms }) => ms);
    figures.push(
      {
        scenario: "c",
        what: `queued to code at 100/s, ${name}, p50`,
        value: quantile(waits, 0.5),
        unit: "ms",
      },
      {
        scenario: "c",
        what: `queued to code at 100/s, ${name}, p99`,
        value: quantile(waits, 0.99),
        unit: "ms",
        ...(name !== "local" && { bar: { atMost: 100 } }),
      },
    );
  }
  return figures;
}

/** (d) A new process for each task. */
async function fresh({ quick }: SuiteOptions): Promise<Figure> {
  const tasks = quick ? 20 : 200;
  const rig = await openRig({ parallelism: 0 });
  try {
    await rig.publish({ "wide.ts": independentFile("wide", tasks) });
    const { ms } = await rig.run(["wide"]);
    return {
      scenario: "d",
      what: "independent no-ops, local, a new process each",
      value: (tasks * 1_000) / ms,
      unit: "tasks/s",
    };
  } finally {
    await rig.stop();
  }
}

await runSuite("executors", ["a", "b", "c", "d"], measure);

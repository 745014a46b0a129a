/**
 * Signal-driven runs while thousands of signals arrive in bursts, commands are given manually, and every kind of fault
 * occurs: schedulers are killed, stopped and cut off, the database crashes, commit responses get lost, streaming tasks are
 * killed with their processes. Then the faults stop, and every signal must have had its effect exactly once.
 * TRADEWIND_FAULT_SEED repeats a run's faults, TRADEWIND_FAULT_SCALE makes it longer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { isAlive } from "../support/process-alive.ts";
import { readLog } from "./component-process.ts";
import { DrivenLoad } from "./driven-load.ts";
import { type Expected, foretell, judgeCounting, judgeFlowing, missing, tasksOf } from "./driven-verdict.ts";
import { FaultDeck } from "./fault-deck.ts";
import type { FaultInstallation } from "./installation.ts";
import type { SchedulerPlace } from "./scheduler-process.ts";
import { SCALE, SEED, stormStage } from "./storm-stage.ts";
import { stuckReport } from "./stuck-report.ts";
import { PoolWatch, TakeoverWatch } from "./watches.ts";

const CONVERGENCE_MS = 90_000;
/** Milliseconds: time to live, renewal, margin. */
const LEASE = [2_000, 500, 500] as const;
const FLOWS = ["flow_1", "flow_2"];

test("every signal has its effect once despite process failures", {
  timeout: 240_000 * Math.max(1, SCALE),
}, async () => {
  const { installation, postgres, proxy } = await stormStage();
  await installation.addPools({ two: 2 });
  const module = JSON.stringify(`${import.meta.dirname}/driven-dag.ts`);
  await installation.publishFiles({
    "driven.ts": `import { countingDag, flowingDag } from ${module};
                  export const counting = countingDag();
                  export const flowing = flowingDag();`,
  });
  const settings = { lease: LEASE, parallelism: 4 };
  const places = [
    installation.place("first", settings),
    installation.place("second", settings),
    installation.place("third", { ...settings, databaseUrl: proxy.url }),
  ];
  const pools = new PoolWatch(installation);
  const takeovers = new TakeoverWatch(installation);
  const deck = new FaultDeck({ installation, postgres, proxy, takeovers, places }, SEED);
  await deck.startAll();
  for (const run of ["count_1", "count_2"]) await installation.trigger("counting", run);
  for (const run of FLOWS) await installation.trigger("sturdy_flow", run);

  const load = new DrivenLoad(installation, FLOWS, SEED);
  const late = sleep(4_000).then(() => installation.trigger("counting", "count_late"));
  await load.send("first", 1, ["go", "tick"]);
  await deck.deal(0.3 * SCALE);
  await deck.ensureTakeovers(2);
  await late;
  await load.stop();

  const counting = await foretell(installation, "counting");
  await until(installation, places, async () => {
    const problems = await Promise.all(counting.map((each) => missing(installation, each)));
    return problems.flat();
  });
  const flowing = await foretell(installation, "sturdy_flow");
  const problems: string[] = [];
  for (const each of counting) problems.push(...(await judgeCounting(installation, each)));
  for (const each of flowing) problems.push(...(await judgeFlowing(installation, each)));
  console.log(JSON.stringify({ ...deck.counts, ...counts(counting), takeovers: takeovers.taken.length }));
  expect(problems).toEqual([]);

  // Streaming tasks still run, or start again on this signal.
  await load.send("last", 1, ["go"]);
  await until(installation, places, async () => (await idleFlows(installation, flowing)).map(String));
  await load.send("last", 2, ["over"]);
  const open = "SELECT run_id, state FROM dag_run WHERE state <> 'success'";
  await until(installation, places, async () =>
    (await installation.sql<object>(open)).map((run) => JSON.stringify(run)),
  );
  await Promise.all([pools.stop(), takeovers.stop()]);

  expect(await installation.sql("SELECT * FROM run_drive")).toEqual([]);
  expect(await installation.sql("SELECT name, occupied FROM pool WHERE occupied <> 0")).toEqual([]);
  expect(pools.violations).toEqual([]);
  expect(installation.crashes()).toEqual([]);
  expect(takeovers.isWaiting).toBe(false);
  expect(takeovers.longest()).toBeLessThan(10_000);
  const logs = places.flatMap(readLog);
  expect(logs.filter(({ level }) => level === "error" || level === "crash")).toEqual([]);

  // Guards against vacuous success: the faults must have hit.
  expect(Math.min(...counting.map(({ bulk }) => bulk))).toBeGreaterThan(500);
  expect(Math.max(...counting.map(({ tick }) => tick))).toBeGreaterThan(50);
  expect(takeovers.taken.length).toBeGreaterThanOrEqual(2);
  expect(deck.counts.drops).toBeGreaterThanOrEqual(1);
  expect(deck.counts.crashed).toBeGreaterThanOrEqual(1);
});

function counts(expected: readonly Expected[]): object {
  return Object.fromEntries(expected.map(({ runId, tick, both, bulk }) => [runId, { tick, both, bulk }]));
}

/** Streaming tasks that do not run. */
async function idleFlows(installation: FaultInstallation, flowing: readonly Expected[]): Promise<string[]> {
  const idle: string[] = [];
  for (const { id, runId } of flowing) {
    const flow = (await tasksOf(installation, id)).get("flow");
    if (flow?.state !== "running" || !isAlive(flow.pid ?? 0)) idle.push(`${runId}: ${flow?.state}`);
  }
  return idle;
}

async function until(
  installation: FaultInstallation,
  places: readonly SchedulerPlace[],
  problems: () => Promise<string[]>,
): Promise<void> {
  const deadline = performance.now() + CONVERGENCE_MS;
  for (let found = await problems(); found.length > 0; found = await problems()) {
    if (performance.now() > deadline)
      throw new Error(`${found.join("\n")}\n${await stuckReport(installation, places)}`);
    await sleep(100);
  }
}

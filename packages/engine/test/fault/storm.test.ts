/**
 * Three schedulers, random DAGs with and without maps, setups and teardowns, and every kind of fault of processes, the
 * database and the connections to it, all at once and seeded. Then the faults stop, and every run must reach the result of
 * the reference interpreter. TRADEWIND_FAULT_SEED repeats a run's programs and faults, TRADEWIND_FAULT_SCALE makes it
 * longer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { PgProxy } from "../support/pg-proxy.ts";
import { type LogLine, readLog } from "./component-process.ts";
import { FaultDeck } from "./fault-deck.ts";
import type { FaultInstallation } from "./installation.ts";
import { mappedPrograms, sturdyMappedPrograms } from "./mapped-programs.ts";
import { judgeMapped } from "./mapped-verdict.ts";
import { POOLS, randomPrograms, sturdyPrograms } from "./programs.ts";
import type { SchedulerPlace } from "./scheduler-process.ts";
import { PLAIN_TASK, type ScriptedDag } from "./scripted-dag.ts";
import { SCALE, SEED, stormStage } from "./storm-stage.ts";
import { stuckReport } from "./stuck-report.ts";
import { gaps, judge } from "./verdict.ts";
import { PoolWatch, TakeoverWatch } from "./watches.ts";

const CONVERGENCE_MS = 60_000;

test("three schedulers do exactly what was scripted despite kills, stops and network faults", {
  timeout: 240_000 * Math.max(1, SCALE),
}, async () => {
  const { installation, postgres, proxy } = await stormStage();
  const programs = [...randomPrograms(SEED, 10), ...sturdyPrograms(SEED, 3)];
  const mapped = [...mappedPrograms(SEED, 7), ...sturdyMappedPrograms(SEED, 2)];
  const scripts = [...programs, ...mapped].map(({ script }) => script);
  await installation.addPools(POOLS);
  await installation.publish([...scripts, ticking()]);
  const places = threePlaces(installation, proxy);
  const pools = new PoolWatch(installation);
  const takeovers = new TakeoverWatch(installation);
  const deck = new FaultDeck({ installation, postgres, proxy, takeovers, places }, SEED);

  await deck.startAll();
  const load = new Load(
    installation,
    scripts.map(({ id }) => id),
  );
  await deck.deal(SCALE);
  await load.stop();
  const healed = new Date();
  await converge(installation, places, healed);
  await Promise.all([pools.stop(), takeovers.stop()]);

  const verdict = await judge(installation, programs);
  const logs = places.flatMap(readLog);
  const revivals = logs.filter((line) => line.message.startsWith("lease lost")).length;
  const refused = logs.filter((line) => line.message === "batch rejected").length;
  const unknown = logs.filter((line) => line.error?.includes("CommitUnknownError")).length;
  const { problems: inMaps, ...maps } = await judgeMapped(installation, mapped);
  const { problems, ...counts } = verdict;
  const longest = Math.round(takeovers.longest());
  const { checks: looks, full } = pools;
  console.log(
    JSON.stringify({
      ...deck.counts,
      ...counts,
      maps,
      revivals,
      refused,
      unknown,
      takeovers: takeovers.taken.length,
      longest,
      looks,
      full,
    }),
  );

  expect(problems).toEqual([]);
  expect(inMaps).toEqual([]);
  expect(installation.crashes()).toEqual([]);
  expect(await gaps(installation, "ticking", 1_000)).toEqual([]);
  expect(await unended(installation, healed)).toEqual([]);
  expect(pools.violations).toEqual([]);
  expect(await occupied(installation)).toEqual([]);
  expect(takeovers.isWaiting).toBe(false);
  expect(longest).toBeLessThan(10_000);
  expect(logs.filter(isAlarming)).toEqual([]);
  expect(await postgres.complaints()).toEqual([]);

  // Guards against vacuous success: the faults must have hit.
  expect(deck.counts.killed).toBeGreaterThanOrEqual(1);
  expect(deck.counts.crashed).toBeGreaterThanOrEqual(1);
  expect(deck.counts.childrenKilled).toBeGreaterThanOrEqual(1);
  expect(deck.counts.drops).toBeGreaterThanOrEqual(1);
  expect(deck.counts.cut).toBeGreaterThanOrEqual(1);
  expect(revivals).toBeGreaterThanOrEqual(deck.counts.paused + deck.counts.partitioned);
  expect(takeovers.taken.length).toBeGreaterThanOrEqual(3);
  expect(verdict.killedAtWork).toBeGreaterThanOrEqual(1);
  expect(verdict.superseded).toBeGreaterThanOrEqual(1);
  expect(maps.instances).toBeGreaterThan(50);
  expect(maps.takenOver).toBeGreaterThanOrEqual(3);
  expect(looks).toBeGreaterThan(100);
  expect(full).toBeGreaterThan(10);
});

function ticking(): ScriptedDag {
  const task = { ...PLAIN_TASK, id: "tick" };
  return { id: "ticking", tasks: [task], every: { duration: "1s", start: new Date().toISOString() } };
}

/** The last one has a faulty connection to the database. */
function threePlaces(installation: FaultInstallation, proxy: PgProxy): SchedulerPlace[] {
  return [
    installation.place("first"),
    installation.place("second"),
    installation.place("third", { databaseUrl: proxy.url }),
  ];
}

/** Creates new runs continuously, a few at once: a fault always finds an active task. */
class Load {
  readonly #installation: FaultInstallation;
  readonly #loop: Promise<void>;
  #isOver = false;

  constructor(installation: FaultInstallation, dagIds: readonly string[]) {
    this.#installation = installation;
    this.#loop = this.#run(dagIds);
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#loop;
  }

  async #run(dagIds: readonly string[]): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      await this.#installation.trigger(dagIds[n % dagIds.length] as string, `run_${n}`);
      await sleep(150);
      await this.#notTooMany();
    }
  }

  /** On a slow machine the backlog must not grow without bounds. */
  async #notTooMany(): Promise<void> {
    const open = "SELECT count(*) AS n FROM dag_run WHERE state IN ('queued', 'running')";
    for (;;) {
      const [row] = await this.#installation.sql<{ n: number }>(open);
      if (this.#isOver || (row?.n ?? 0) < 60) return;
      await sleep(100);
    }
  }
}

async function converge(
  installation: FaultInstallation,
  places: readonly SchedulerPlace[],
  healed: Date,
): Promise<void> {
  const deadline = performance.now() + CONVERGENCE_MS;
  while ((await unended(installation, healed)).length > 0) {
    if (performance.now() > deadline)
      throw new Error(`runs are stuck:\n${await stuckReport(installation, places)}`);
    await sleep(100);
  }
}

async function unended(installation: FaultInstallation, healed: Date): Promise<object[]> {
  return installation.sql<object>(
    "SELECT id, dag_id, run_id FROM dag_run WHERE state IN ('queued', 'running') AND created_at < $1",
    [healed],
  );
}

/** Only the ticking DAG, which never stops, may hold a slot. */
async function occupied(installation: FaultInstallation): Promise<object[]> {
  return installation.sql<object>(
    "SELECT name, occupied FROM pool WHERE occupied > 0 AND name <> 'default_pool'",
  );
}

/** An unreachable database is a warning. Any error, and any output of Node itself, is a defect. */
function isAlarming({ level }: LogLine): boolean {
  return level === "error" || level === "crash";
}

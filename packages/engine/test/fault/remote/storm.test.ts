/**
 * The storm of remote execution: three schedulers, three workers, two API servers, Redis and PostgreSQL, all of which are
 * killed, paused and cut off, while runs are created. Then the faults stop, and every run must succeed. `npm run test:storm`
 * is the long form; TRADEWIND_FAULT_SEED repeats a run's faults, TRADEWIND_FAULT_SCALE makes it longer.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { type LogLine, readLog } from "../component-process.ts";
import { SCALE, SEED } from "../storm-stage.ts";
import { stuckReport } from "../stuck-report.ts";
import { STORM_DAG } from "./storm-dag.ts";
import { StormDeck } from "./storm-deck.ts";
import { StormSite } from "./storm-site.ts";
import { judgeStorm } from "./storm-verdict.ts";

const CONVERGENCE_MS = 120_000;
const ATTEMPTS = 500 * SCALE;
const ATTEMPTS_OF_A_RUN = 4;
/** Runs in progress: all slots of the workers are always occupied. */
const MOST_OPEN = 24;

test("schedulers, workers, API servers, Redis and PostgreSQL die, and no attempt is lost, repeated or disturbed", {
  timeout: 240_000 * Math.max(1, SCALE),
}, async () => {
  console.log(`fault test: TRADEWIND_FAULT_SEED=${SEED} TRADEWIND_FAULT_SCALE=${SCALE}`);
  const began = performance.now();
  const module = JSON.stringify(`${import.meta.dirname}/storm-dag.ts`);
  const site = await StormSite.open({
    ...{ schedulers: 3, apis: 2, workers: 3, slots: 4 },
    schedulerLease: [3_000, 500, 800],
    workerLeaseMs: 5_000,
  });
  const { installation, places, postgres } = site;
  await installation.publishFiles({
    "storm.ts": `import { stormDag } from ${module};\nexport const storm = stormDag();`,
  });
  const load = new Load(site);
  const deck = new StormDeck(site, SEED);
  try {
    for (let round = 0; round < SCALE; round++) await Promise.race([deck.deal(), load.failed]);
    await load.stop(ATTEMPTS / ATTEMPTS_OF_A_RUN);
    await isQuiet(site);
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${await stuckReport(installation, places)}`);
  }

  const { problems, ...figures } = await judgeStorm(installation, deck, load.runs);
  const seconds = Math.round((performance.now() - began) / 1_000);
  console.log(JSON.stringify({ runs: load.runs.length, ...figures, ...deck.counts, ...deck.hits, seconds }));
  expect(problems).toEqual([]);
  expect(installation.crashes()).toEqual([]);
  expect(await postgres.complaints()).toEqual([]);
  expect(places.flatMap(readLog).filter(isAlarming)).toEqual([]);

  // Guards against vacuous success: the faults must have hit.
  for (const [fault, count] of Object.entries(deck.counts)) expect([fault, count]).toEqual([fault, SCALE]);
  for (const [what, count] of Object.entries(deck.hits)) expect([what, count > 0]).toEqual([what, true]);
  expect(figures.attempts).toBeGreaterThanOrEqual(ATTEMPTS);
  expect(figures.undisturbed).toBeGreaterThanOrEqual(SCALE);
  expect(figures.lost).toBeGreaterThanOrEqual(SCALE);
});

/** An API server logs each request that failed without the database. */
function isAlarming({ error, level, message }: LogLine): boolean {
  const isOutage = /ECONN|CommitUnknown|terminat|database system|timeout|not queryable/i.test(error ?? "");
  return level === "crash" || (level === "error" && !(message === "API request failed" && isOutage));
}

/** Creates runs as long as the storm lasts. */
class Load {
  readonly runs: string[] = [];
  /** Rejects if runs cannot be created. */
  readonly failed: Promise<never>;
  readonly #site: StormSite;
  readonly #loop: Promise<void>;
  #enough = Number.POSITIVE_INFINITY;

  constructor(site: StormSite) {
    this.#site = site;
    this.#loop = this.#run();
    this.failed = this.#loop.then(() => new Promise<never>(() => {}));
    this.failed.catch(() => {});
  }

  /** When there are at least this many runs. */
  async stop(enough: number): Promise<void> {
    this.#enough = enough;
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { installation } = this.#site;
    const open = "SELECT count(*)::int AS n FROM dag_run WHERE state IN ('queued', 'running')";
    while (this.runs.length < this.#enough) {
      const [row] = await installation.sql<{ n: number }>(open);
      for (let n = row?.n ?? 0; n < MOST_OPEN; n++) {
        const run = `run_${this.runs.length}`;
        this.runs.push(run);
        await installation.trigger(STORM_DAG, run);
      }
      await sleep(100);
    }
  }
}

/** All runs have ended, and nothing is left of them. */
async function isQuiet({ installation }: StormSite): Promise<void> {
  const left = `SELECT 1 FROM dag_run WHERE state IN ('queued', 'running')
                UNION ALL SELECT 1 FROM assignment UNION ALL SELECT 1 FROM report
                UNION ALL SELECT 1 FROM pool WHERE occupied <> 0`;
  await installation.until(
    "all runs end",
    async () => (await installation.sql(left)).length === 0,
    CONVERGENCE_MS,
  );
}

/**
 * A whole Tradewind in one process on a temporary home: embedded PostgreSQL (fsync on), DAG processor, scheduler with
 * warm children. The benchmarks measure this end to end; nothing is left out.
 */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { DagProcessor } from "../packages/engine/src/bundle/dag-processor.ts";
import { artefactHash } from "../packages/engine/src/code/artefact-hash.ts";
import { BundleCache } from "../packages/engine/src/code/bundle-cache.ts";
import type { Executor } from "../packages/engine/src/execute/contract.ts";
import { WakeUps } from "../packages/engine/src/job/wake-up.ts";
import { LogFolder } from "../packages/engine/src/log/log-folder.ts";
import { planNext } from "../packages/engine/src/model/calendar/planner.ts";
import { TimetableClient } from "../packages/engine/src/plan/timetable-client.ts";
import { createBackfillHost } from "../packages/engine/src/process/backfill.ts";
import { fetchBundle } from "../packages/engine/src/process/parts/fetch-bundle.ts";
import { openDatabase } from "../packages/engine/src/process/parts/open-database.ts";
import type { ServiceParts } from "../packages/engine/src/process/parts/service-parts.ts";
import { createScheduler } from "../packages/engine/src/process/scheduler.ts";
import { SchedulerJob } from "../packages/engine/src/run/job/scheduler-job.ts";
import { SecretBox } from "../packages/engine/src/secret/secret-box.ts";
import { resolveConfig } from "../packages/engine/src/service/config.ts";
import { openHome } from "../packages/engine/src/service/home.ts";
import { createLogger } from "../packages/engine/src/service/logger.ts";
import type { NamedBundle } from "../packages/engine/src/store/dag/bundles.ts";
import { adhoc, type Database } from "../packages/engine/src/store/database/database.ts";
import { migrate } from "../packages/engine/src/store/database/migrate.ts";
import { createRun } from "../packages/engine/src/store/run/run-create.ts";
import { NEW_RUN } from "../packages/engine/test/support/new-run.ts";
import { type CpuTimes, cpuBetween, ProcessTree } from "./process-tree.ts";

export interface Rig {
  readonly database: Database;
  readonly scheduler: SchedulerJob;
  readonly folder: string;
  readonly home: string;
  readonly processor: DagProcessor;
  readonly parts: ServiceParts;
  /** Writes DAG files and loads them. */
  publish(files: Readonly<Record<string, string>>): Promise<{ ms: number }>;
  /** Creates runs and resolves when all have ended. */
  run(dagIds: readonly string[]): Promise<RunsDone>;
  /** Creates runs and does not wait for them. */
  create(dagIds: readonly string[]): Promise<number[]>;
  /** Serves backfills; `wake`: there is a new one. */
  backfills(): Promise<{ wake(): void; stop(): Promise<void> }>;
  /** Resolves when all of these runs have ended; rejects if one of them failed. */
  ended(ids: readonly number[]): Promise<void>;
  stop(): Promise<void>;
}

export interface RunsDone {
  /** From before the first run is created until the last one is seen to have ended. */
  readonly ms: number;
  readonly ids: readonly number[];
  /** CPU milliseconds used meanwhile. */
  readonly cpu: CpuTimes;
}

export interface RigOptions {
  readonly parallelism?: number;
  readonly executor?: "local" | "queue";
  readonly redisUrl?: string;
}

export async function openRig(options: RigOptions = {}): Promise<Rig> {
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
  const folder = join(root, "dags");
  const config = resolveConfig(
    {
      home: join(root, "home"),
      dags: folder,
      ...options,
    },
    {
      TRADEWIND_LOG_LEVEL: process.env.TRADEWIND_LOG_LEVEL ?? "warn",
      DATABASE_URL: process.env.DATABASE_URL,
    },
  );
  await mkdir(folder, { recursive: true });
  const home = await openHome(config.home);
  const logger = createLogger({ level: config.logLevel, format: "pretty" });
  const { database, stop } = await openDatabase(config, { applicationName: "tradewind bench" });
  await migrate(database);
  const secretBox = await SecretBox.load(home.secretKey);
  const wakeUps = new WakeUps(database);
  const logs = new LogFolder(home.logs);
  const parts = { config, database, home, logger, logs, secretBox, wakeUps };
  const scheduler = createScheduler(parts);
  const processor = new DagProcessor({ database, folder, logger, plan: planNext, isPausedAtCreation: false });
  await scheduler.start();
  const tree = new ProcessTree(process.pid, join(home.postgres, "data"));
  const create = async (dagIds: readonly string[]) => {
    const ids = await createRuns(database, dagIds);
    wakeUps.send("runs");
    return ids;
  };
  const ended = (ids: readonly number[]) => allEnded({ database, scheduler }, ids);
  return {
    database,
    scheduler,
    folder,
    home: config.home,
    processor,
    parts,
    create,
    ended,
    async backfills() {
      const host = createBackfillHost(parts);
      await host.start();
      return { wake: () => wakeUps.send("backfills"), stop: () => host.stop() };
    },
    async publish(files) {
      await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)));
      const started = performance.now();
      const report = await processor.runOnce();
      if (report.failed > 0)
        throw new Error(`DAG files failed: ${JSON.stringify(await database.rows(ERRORS))}`);
      return { ms: performance.now() - started };
    },
    async run(dagIds) {
      const before = tree.cpu();
      const own = process.cpuUsage();
      const started = performance.now();
      const ids = await create(dagIds);
      await ended(ids);
      const ms = performance.now() - started;
      // Exact, and without the cost of reading the others.
      const { user, system } = process.cpuUsage(own);
      return { ms, ids, cpu: { ...cpuBetween(before, tree.cpu()), main: (user + system) / 1_000 } };
    },
    async stop() {
      await scheduler.stop(0);
      await processor.stop();
      await wakeUps.close();
      await stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

export interface BareScheduler {
  readonly database: Database;
  createRuns(dagIds: readonly string[]): Promise<void>;
  wake(topic: "dags" | "runs"): void;
  stop(): Promise<void>;
}

/** Code that is never run, as a bundle. */
export function bundleOf(code: string): NamedBundle {
  return { hash: artefactHash(code), head: "", sharedChunk: null, code, sourceMap: null };
}

/** A scheduler with another executor, and nothing else. */
export async function openBareScheduler(executor: Executor): Promise<BareScheduler> {
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
  const config = resolveConfig({ home: join(root, "home") }, { DATABASE_URL: process.env.DATABASE_URL });
  const home = await openHome(config.home);
  const { database, stop } = await openDatabase(config, { applicationName: "tradewind bench" });
  await migrate(database);
  const wakeUps = new WakeUps(database);
  const bundles = new BundleCache(home.bundles, (hash) => fetchBundle(database, hash));
  const logger = createLogger({ level: "warn", format: "pretty" });
  const rest = { bundles, logs: new LogFolder(home.logs), logger, wakeUps, version: "bench" };
  const scheduler = new SchedulerJob({
    database,
    executors: [executor],
    ...rest,
    timetables: (onPlanned) => new TimetableClient({ database, bundles, logger, onPlanned }),
  });
  await scheduler.start();
  return {
    database,
    async createRuns(dagIds) {
      await createRuns(database, dagIds);
      wakeUps.send("runs");
    },
    wake: (topic) => wakeUps.send(topic),
    async stop() {
      await scheduler.stop(0);
      await wakeUps.close();
      await stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

const ERRORS = adhoc("SELECT file, message FROM import_error");
const OPEN = adhoc("SELECT count(*) AS n FROM dag_run WHERE id = ANY($1) AND state IN ('queued', 'running')");
const STATES = adhoc("SELECT state, count(*) AS n FROM dag_run WHERE id = ANY($1) GROUP BY state");

export async function createRuns(database: Database, dagIds: readonly string[]): Promise<number[]> {
  return database.transaction(async (tx) => {
    const ids: number[] = [];
    for (const dagId of dagIds) {
      const result = await createRun(tx, {
        dagId,
        ...NEW_RUN,
      });
      if (result.kind !== "created") throw new Error(`run of ${dagId}: ${result.kind}`);
      ids.push(result.dagRunId);
    }
    return ids;
  });
}

/**
 * Polls the scheduler's memory, which costs nothing, and queries the database only when none of the runs is loaded: a
 * query every few milliseconds would be a tenth of the measured time.
 */
async function allEnded(rig: Pick<Rig, "database" | "scheduler">, ids: readonly number[]): Promise<void> {
  const { database, scheduler } = rig;
  const deadline = performance.now() + 300_000;
  for (;;) {
    await sleep(1);
    if (performance.now() > deadline)
      throw new Error(`runs do not end: ${JSON.stringify(await database.rows(STATES, [ids]))}`);
    const isDriven = ids.some((id) => scheduler["actors"].has(id));
    if (!isDriven && (await database.one<{ n: number }>(OPEN, [ids]))?.n === 0) break;
  }
  const states = await database.rows<{ state: string; n: number }>(STATES, [ids]);
  if (states.some(({ state }) => state !== "success"))
    throw new Error(`runs failed: ${JSON.stringify(states)}`);
}

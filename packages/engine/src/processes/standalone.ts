/**
 * Everything in one process, on one machine: database, DAG processor, scheduler with local executor, API. The same
 * parts as in production, joined by function calls where a cluster has wake-ups.
 *
 * Killed at any moment, the next start finds all it needs under the home folder; the embedded PostgreSQL may even
 * have survived and is adopted.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ApiServer } from "../api/api-server.ts";
import { DagProcessor } from "../bundle/dag-processor.ts";
import { planNext } from "../schedule/planner.ts";
import type { Config } from "../service/config.ts";
import { ensureToken, lockHome, openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { SecretBox } from "../service/secret-box.ts";
import { startAll, stopAll } from "../service/service.ts";
import { WakeUps } from "../signal/wake-up.ts";
import { migrate } from "../store/migrate.ts";
import { runEdits } from "../store/run-edit.ts";
import { ensureAdminToken } from "../store/tokens.ts";
import { VERSION } from "../version.ts";
import { passOn } from "./api.ts";
import { JobHeartbeat } from "./job-heartbeat.ts";
import { openDatabase } from "./open-database.ts";
import { createScheduler } from "./scheduler.ts";

export interface Standalone {
  readonly url: string;
  readonly token: string;
  stop(): Promise<void>;
}

export async function startStandalone(config: Config): Promise<Standalone> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const home = await openHome(config.home);
  const lock = await lockHome(home);
  const undo: (() => Promise<void>)[] = [() => lock.release()];
  try {
    const { database, connect, stop } = await openDatabase(config, {
      applicationName: "tradewind standalone",
      supervise: logger.child({ component: "postgres" }),
    });
    undo.push(stop);
    await migrate(database);
    const token = await ensureToken(home);
    await ensureAdminToken(database, token);
    const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
    const wakeUps = new WakeUps(database);
    undo.push(async () => wakeUps.close());
    const scheduler = createScheduler({ config, database, home, logger, secretBox, wakeUps });
    const apiDatabase = connect("tradewind api");
    undo.push(() => apiDatabase.close());
    const api = new ApiServer({
      database: apiDatabase,
      logger: logger.child({ component: "api" }),
      config: { host: config.host, port: config.port, version: VERSION },
      secretBox,
      logsDir: home.logs,
      runEdits,
      wakeUps,
      notify: (change) => passOn(change, wakeUps),
    });
    const processor = new DagProcessor({
      database,
      folder: config.dags,
      logger: logger.child({ component: "dag-processor" }),
      plan: planNext,
      isPausedAtCreation: false,
      onChange: () => wakeUps.send("dags"),
      ledgerPath: join(home.path, "dag-files.json"),
    });
    const services = [
      api,
      scheduler,
      processor,
      new JobHeartbeat("dag_processor", database, logger),
      new JobHeartbeat("api", database, logger),
    ];
    await startAll(services, logger);
    undo.push(() => stopAll(services, logger));
    await lock.describe({ url: api.url });
    const address = join(home.path, "standalone.json");
    await writeFile(address, JSON.stringify({ url: api.url, pid: process.pid }));
    undo.push(() => rm(address, { force: true }));
    return { url: api.url, token, stop: () => unwind(undo) };
  } catch (error) {
    await unwind(undo).catch(() => {});
    throw error;
  }
}

/** In reverse order, each step even if a former one failed. */
async function unwind(steps: (() => Promise<void>)[]): Promise<void> {
  let failure: unknown;
  for (let step = steps.pop(); step; step = steps.pop()) {
    try {
      await step();
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
}

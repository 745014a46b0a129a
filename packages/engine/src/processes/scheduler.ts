import { BundleCache } from "../execute/bundle-cache.ts";
import { LocalExecutor } from "../execute/local-executor.ts";
import type { LeaseTimes } from "../job/lease.ts";
import { LargeLengths } from "../schedule/large-lengths.ts";
import { SchedulerJob } from "../schedule/scheduler-job.ts";
import { taskServices } from "../schedule/task-services.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { type Home, openHome } from "../service/home.ts";
import { createLogger, type Logger } from "../service/logger.ts";
import { SecretBox } from "../service/secret-box.ts";
import { startAll, stopAll } from "../service/service.ts";
import { WakeUps } from "../signal/wake-up.ts";
import type { Database } from "../store/database.ts";
import { migrate } from "../store/migrate.ts";
import { reachDatabase } from "../store/reach-database.ts";
import { VERSION } from "../version.ts";
import { createBackfillHost } from "./backfill.ts";
import { createDeadlineHost } from "./deadlines.ts";
import { fetchBundle } from "./fetch-bundle.ts";
import { createLargeOutputs } from "./large-outputs.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";

export interface SchedulerParts {
  readonly config: Config;
  readonly database: Database;
  readonly home: Home;
  readonly logger: Logger;
  readonly secretBox: SecretBox;
  readonly wakeUps: WakeUps;
  /** See `LocalExecutorOptions`. */
  readonly ahead?: number;
  readonly lease?: LeaseTimes;
}

/** A scheduler with the local executor of this machine. */
export function createScheduler(parts: SchedulerParts): SchedulerJob {
  const { config, database, home, logger, secretBox, wakeUps } = parts;
  const outputs = createLargeOutputs(config, database);
  const executor = new LocalExecutor({
    parallelism: config.parallelism,
    graceMs: config.stopGraceMs,
    outputs,
    services: taskServices(database, secretBox, (news) => wakeUps.send(news)),
    logger: logger.child({ component: "executor" }),
    ...(parts.ahead !== undefined && { ahead: parts.ahead }),
  });
  return new SchedulerJob({
    database,
    executors: [executor],
    bundles: new BundleCache(home.bundles, (hash) => fetchBundle(database, hash)),
    logsDir: home.logs,
    logger,
    wakeUps,
    version: VERSION,
    lengths: new LargeLengths(outputs),
    maxMapLength: config.maxMapLength,
    ...(parts.lease && { lease: parts.lease }),
  });
}

/** `tradewind scheduler`: one of any number on a shared database. */
export async function startScheduler(config: Config): Promise<{ stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const url = requireDatabaseUrl(config, "scheduler");
  const home = await openHome(config.home);
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const database = await reachDatabase(url, {
    max: config.databaseConnections,
    applicationName: "tradewind scheduler",
  });
  await migrate(database);
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  const parts = { config, database, home, logger, secretBox, wakeUps };
  const scheduler = createScheduler(parts);
  const services = [scheduler, createBackfillHost(parts), createDeadlineHost(parts, scheduler)];
  await startAll(services, logger);
  return {
    stop: async () => {
      await stopAll(services, logger);
      wakeUps.close();
      await database.close();
    },
  };
}

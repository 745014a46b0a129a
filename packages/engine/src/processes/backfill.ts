import { BundleCache } from "../execute/bundle-cache.ts";
import { LocalExecutor } from "../execute/local-executor.ts";
import { BackfillHost } from "../schedule/backfill-host.ts";
import { BackfillJob } from "../schedule/backfill-job.ts";
import { LargeLengths } from "../schedule/large-lengths.ts";
import { taskServices } from "../schedule/task-services.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { SecretBox } from "../service/secret-box.ts";
import { WakeUps } from "../signal/wake-up.ts";
import { Database } from "../store/database.ts";
import { migrate } from "../store/migrate.ts";
import { reachDatabase } from "../store/reach-database.ts";
import { VERSION } from "../version.ts";
import { fetchBundle } from "./fetch-bundle.ts";
import { createLargeOutputs } from "./large-outputs.ts";
import type { SchedulerParts } from "./scheduler.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";

/**
 * A backfill job with an executor and connections of its own, when there is a backfill to do. It is to the scheduler
 * beside it as one of another process: what it tells comes by the database, except what is told only here.
 */
export function createBackfillHost(
  parts: SchedulerParts,
  how: { readonly listens?: boolean; readonly idleMs?: number } = {},
): BackfillHost {
  const { config, home, logger, secretBox, wakeUps: shared } = parts;
  return new BackfillHost({
    database: parts.database,
    logger: logger.child({ component: "backfill" }),
    wakeUps: shared,
    listens: false,
    ...how,
    makeJob: () => {
      const database = Database.connect(parts.database.url, {
        max: config.databaseConnections,
        applicationName: "tradewind backfill",
      });
      const wakeUps = new WakeUps(database);
      wakeUps.onLocal((topic) => {
        if (topic === "tasks") shared.tellHere(topic);
      });
      const outputs = createLargeOutputs(config, database);
      const executor = new LocalExecutor({
        parallelism: config.parallelism,
        graceMs: config.stopGraceMs,
        outputs,
        services: taskServices(database, secretBox, (news) => wakeUps.send(news)),
        logger: logger.child({ component: "executor" }),
      });
      const job = new BackfillJob({
        database,
        executors: [executor],
        bundles: new BundleCache(home.bundles, (hash) => fetchBundle(database, hash)),
        logsDir: home.logs,
        logger,
        wakeUps,
        version: VERSION,
        lengths: new LargeLengths(outputs),
        maxMapLength: config.maxMapLength,
      });
      return {
        job,
        close: async () => {
          wakeUps.close();
          await database.close();
        },
      };
    },
  });
}

/** `tradewind backfill run`: nothing but backfills, beside any number of schedulers on a shared database. */
export async function startBackfillRunner(config: Config): Promise<{ stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const url = requireDatabaseUrl(config, "backfill run");
  const home = await openHome(config.home);
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const database = await reachDatabase(url, { max: 2, applicationName: "tradewind backfill" });
  await migrate(database);
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  const host = createBackfillHost({ config, database, home, logger, secretBox, wakeUps }, { listens: true });
  await host.start();
  return {
    stop: async () => {
      await host.stop();
      wakeUps.close();
      await database.close();
    },
  };
}

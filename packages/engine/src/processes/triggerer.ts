import { BundleCache } from "../execute/bundle-cache.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { type Home, openHome } from "../service/home.ts";
import { createLogger, type Logger } from "../service/logger.ts";
import { SecretBox } from "../service/secret-box.ts";
import { WakeUps } from "../signal/wake-up.ts";
import type { Database } from "../store/database.ts";
import { migrate } from "../store/migrate.ts";
import { reachDatabase } from "../store/reach-database.ts";
import { TriggerRunner } from "../trigger/trigger-runner.ts";
import { triggerServices } from "../trigger/trigger-services.ts";
import { TriggererJob } from "../trigger/triggerer-job.ts";
import type { TriggererOptions } from "../trigger/triggerer-options.ts";
import { VERSION } from "../version.ts";
import { fetchBundle } from "./fetch-bundle.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";

export interface TriggererParts {
  readonly config: Config;
  readonly database: Database;
  readonly home: Home;
  readonly logger: Logger;
  readonly secretBox: SecretBox;
  readonly wakeUps: WakeUps;
  readonly times?: Pick<TriggererOptions, "lease" | "stallMs" | "announceAfterMs">;
}

/** A triggerer with a trigger runner of its own. */
export function createTriggerer(parts: TriggererParts): TriggererJob {
  const { config, database, home, logger, secretBox, wakeUps, times } = parts;
  const { services, mask } = triggerServices(database, secretBox);
  return new TriggererJob({
    database,
    runner: new TriggerRunner({ services, logger: logger.child({ component: "trigger-runner" }) }),
    bundles: new BundleCache(home.bundles, (hash) => fetchBundle(database, hash)),
    logsDir: home.logs,
    mask,
    logger,
    wakeUps,
    version: VERSION,
    capacity: config.triggererCapacity,
    queues: config.triggererQueues,
    ...times,
  });
}

/** `tradewind triggerer`: one of any number on a shared database. */
export async function startTriggerer(config: Config): Promise<{ stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const url = requireDatabaseUrl(config, "triggerer");
  const home = await openHome(config.home);
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const database = await reachDatabase(url, {
    max: config.databaseConnections,
    applicationName: "tradewind triggerer",
  });
  await migrate(database);
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  const triggerer = createTriggerer({ config, database, home, logger, secretBox, wakeUps });
  await triggerer.start();
  return {
    stop: async () => {
      await triggerer.stop();
      wakeUps.close();
      await database.close();
    },
  };
}

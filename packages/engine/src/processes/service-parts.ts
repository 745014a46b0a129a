import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { type Home, openHome } from "../service/home.ts";
import { createLogger, type Logger } from "../service/logger.ts";
import { SecretBox } from "../service/secret-box.ts";
import { WakeUps } from "../signal/wake-up.ts";
import type { Database } from "../store/database.ts";
import { migrate } from "../store/migrate.ts";
import { reachDatabase } from "../store/reach-database.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";

/** What services are made of. */
export interface ServiceParts {
  readonly config: Config;
  readonly database: Database;
  readonly home: Home;
  readonly logger: Logger;
  readonly secretBox: SecretBox;
  readonly wakeUps: WakeUps;
}

/** For a process with one service, on a database that it shares with others and brings up to date. */
export async function openServiceParts(
  config: Config,
  service: "api" | "backfill" | "scheduler" | "triggerer",
  options: { readonly command?: string; readonly connections?: number } = {},
): Promise<{ readonly parts: ServiceParts; close(): Promise<void> }> {
  const { command = service, connections = config.databaseConnections } = options;
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const url = requireDatabaseUrl(config, command);
  const home = await openHome(config.home);
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const database = await reachDatabase(url, { max: connections, applicationName: `tradewind ${service}` });
  await migrate(database);
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  return {
    parts: { config, database, home, logger, secretBox, wakeUps },
    close: async () => {
      wakeUps.close();
      await database.close();
    },
  };
}

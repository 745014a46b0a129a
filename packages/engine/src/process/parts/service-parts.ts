import { WakeUps } from "../../job/wake-up.ts";
import type { LogStore } from "../../log/log-store.ts";
import { SecretBox } from "../../secret/secret-box.ts";
import { type Config, requireDatabaseUrl } from "../../service/config.ts";
import { type Home, openHome } from "../../service/home.ts";
import { createLogger, type Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import { type Service, stopAll } from "../../service/service.ts";
import type { Database } from "../../store/database/database.ts";
import { requireSchema } from "../../store/database/migrate.ts";
import { reachDatabase } from "../../store/database/reach-database.ts";
import { openLogs } from "./log-store.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";
import { prepareUserCode } from "./user-code.ts";

/** The common dependencies of services. */
export interface ServiceParts {
  readonly config: Config;
  readonly database: Database;
  readonly home: Home;
  readonly logger: Logger;
  readonly logs: LogStore;
  readonly secretBox: SecretBox;
  readonly wakeUps: WakeUps;
  /** The account that user code runs as. Default: the account of this process. */
  readonly user?: ProcessUser | null | undefined;
}

/** Opens the parts of a process with one service, on a shared database whose schema must be current. */
export async function openServiceParts(
  config: Config,
  service: "api" | "backfill" | "scheduler" | "triggerer",
  options: {
    readonly command?: string;
    readonly connections?: number;
    readonly signal?: AbortSignal | undefined;
  } = {},
): Promise<{ readonly parts: ServiceParts; close(): Promise<void> }> {
  const { command = service, connections = config.databaseConnections, signal } = options;
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const url = requireDatabaseUrl(config, command);
  const home = await openHome(config.home);
  const user = await prepareUserCode({ config, home, logger });
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const applicationName = `tradewind ${service}`;
  const database = await reachDatabase(url, { max: connections, applicationName }, { logger, signal });
  await requireSchema(database);
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  const logs = await openLogs(config);
  return {
    parts: { config, database, home, logger, logs, secretBox, wakeUps, user },
    close: async () => {
      await logs.close();
      await wakeUps.close();
      await database.close();
    },
  };
}

/** Time for the last writes after tasks have ended or were killed. */
const LAST_WRITES_MS = 3_000;

/** A process that drains before it stops, as its command controls it. */
export interface DrainingProcess {
  stop(): Promise<void>;
  /** Whether its lease is held. */
  isReady?(): boolean;
  /** Ends the drain of a stop in progress. False if there is none. */
  endDrain(): boolean;
}

export function endDrains(services: readonly Service[]): boolean {
  return services.map((service) => service.endDrain?.() ?? false).includes(true);
}

/** Drains all services at once, then stops them one by one. Does not wait for a database that does not answer. */
export async function stopServices(
  services: readonly Service[],
  { config, database, logger }: Pick<ServiceParts, "config" | "database" | "logger">,
): Promise<void> {
  await Promise.all(services.map((service) => service.drain?.()));
  database.rejectCallsIn(config.stopGraceMs + LAST_WRITES_MS);
  await stopAll(services, logger);
}

import { join } from "node:path";
import { DagProcessor, type DagProcessorOptions } from "../bundle/dag-processor.ts";
import { planNext } from "../model/calendar/planner.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { startAll } from "../service/service.ts";
import { requireSchema } from "../store/database/migrate.ts";
import { reachDatabase } from "../store/database/reach-database.ts";
import { executorNames } from "./parts/executors.ts";
import { JobHeartbeat } from "./parts/job-heartbeat.ts";
import { type ServiceParts, stopServices } from "./parts/service-parts.ts";
import { prepareUserCode } from "./parts/user-code.ts";

/** A DAG processor on the configured DAG folder. */
export function createDagProcessor(
  { config, database, home, logger, user }: Omit<ServiceParts, "logs" | "secretBox" | "wakeUps">,
  how: Pick<DagProcessorOptions, "failureLevel" | "isPausedAtCreation" | "onChange">,
): DagProcessor {
  return new DagProcessor({
    database,
    folder: config.dags,
    logger: logger.child({ component: "dag-processor" }),
    plan: planNext,
    executors: executorNames(config),
    ledgerPath: join(home.path, "dag-files.json"),
    user,
    ...how,
  });
}

/** `tradewind dag-processor`: bundles a DAG folder into a shared database. New DAGs start paused. */
export async function startDagProcessor(
  config: Config,
  signal?: AbortSignal,
): Promise<{ isReady(): boolean; stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const url = requireDatabaseUrl(config, "dag-processor");
  const home = await openHome(config.home);
  const user = await prepareUserCode({ config, home, logger, dags: config.dags });
  const database = await reachDatabase(
    url,
    { applicationName: "tradewind dag-processor" },
    { logger, signal },
  );
  await requireSchema(database);
  const processor = createDagProcessor(
    { config, database, home, logger, user },
    { isPausedAtCreation: true },
  );
  const heartbeat = new JobHeartbeat("dag_processor", database, logger);
  await startAll([processor, heartbeat], logger);
  return {
    isReady: () => heartbeat.isReady(),
    stop: async () => {
      await stopServices([processor, heartbeat], { config, database, logger });
      await database.close();
    },
  };
}

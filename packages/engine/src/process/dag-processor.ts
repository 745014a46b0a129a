import { join } from "node:path";
import { DagProcessor } from "../bundle/dag-processor.ts";
import { planNext } from "../model/calendar/planner.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { startAll } from "../service/service.ts";
import { requireSchema } from "../store/database/migrate.ts";
import { reachDatabase } from "../store/database/reach-database.ts";
import { JobHeartbeat } from "./job-heartbeat.ts";
import { stopServices } from "./service-parts.ts";
import { prepareUserCode } from "./user-code.ts";

/** `tradewind dag-processor`: bundles a DAG folder into a shared database. New DAGs start paused. */
export async function startDagProcessor(
  config: Config,
  signal?: AbortSignal,
): Promise<{ stop(): Promise<void> }> {
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
  const processor = new DagProcessor({
    database,
    folder: config.dags,
    logger: logger.child({ component: "dag-processor" }),
    plan: planNext,
    isPausedAtCreation: true,
    ledgerPath: join(home.path, "dag-files.json"),
    user,
  });
  const heartbeat = new JobHeartbeat("dag_processor", database, logger);
  await startAll([processor, heartbeat], logger);
  return {
    stop: async () => {
      await stopServices([processor, heartbeat], { config, database, logger });
      await database.close();
    },
  };
}

import { BackfillHost } from "../schedule/backfill-host.ts";
import { BackfillJob } from "../schedule/backfill-job.ts";
import type { Config } from "../service/config.ts";
import { WakeUps } from "../signal/wake-up.ts";
import { Database } from "../store/database.ts";
import { runDriverOptions } from "./run-driver.ts";
import { openServiceParts, type ServiceParts } from "./service-parts.ts";

/**
 * A backfill job with an executor and connections of its own, when there is a backfill to do. It is to the scheduler
 * beside it as one of another process: what it tells comes by the database, except what is told only here.
 */
export function createBackfillHost(
  parts: ServiceParts,
  how: { readonly listens?: boolean; readonly idleMs?: number } = {},
): BackfillHost {
  const { config, logger, wakeUps: shared } = parts;
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
      const job = new BackfillJob(runDriverOptions({ ...parts, database, wakeUps }));
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
  const { parts, close } = await openServiceParts(config, "backfill", {
    command: "backfill run",
    connections: 2,
  });
  const host = createBackfillHost(parts, { listens: true });
  await host.start();
  return {
    stop: async () => {
      await host.stop();
      await close();
    },
  };
}

import type { LeaseTimes } from "../job/lease.ts";
import { WakeUps } from "../job/wake-up.ts";
import { BackfillHost, type BackfillHostOptions } from "../run/job/backfill-host.ts";
import { BackfillJob } from "../run/job/backfill-job.ts";
import type { Config } from "../service/config.ts";
import {
  type DrainingProcess,
  openServiceParts,
  type ServiceParts,
  stopServices,
} from "./parts/service-parts.ts";
import { createRunDriver, type RunDriver, runDriverOptions } from "./run-driver.ts";

/**
 * A backfill job with its own connections, created while there is a backfill to run. It talks to the
 * scheduler beside it through the database, like a job of another process, except for wake-ups that stay in the process.
 */
export function createBackfillHost(
  parts: ServiceParts,
  how: Partial<Pick<BackfillHostOptions, "dags" | "idleMs" | "listens" | "lookMs">> & {
    readonly lease?: LeaseTimes;
    /** Shared with other jobs of the process. Left out: each job has executors of its own. */
    readonly driver?: RunDriver;
  } = {},
): BackfillHost {
  const { config, logger, wakeUps: shared } = parts;
  const { driver, lease, ...times } = how;
  return new BackfillHost({
    database: parts.database,
    logger: logger.child({ component: "backfill" }),
    wakeUps: shared,
    listens: false,
    ...times,
    makeJob: () => {
      const database = parts.database.sibling({
        max: config.databaseConnections,
        applicationName: "tradewind backfill",
      });
      const wakeUps = new WakeUps(database);
      wakeUps.onLocal((topic) => {
        if (topic === "tasks") shared.sendHere(topic);
      });
      const job = new BackfillJob({
        ...(driver
          ? { ...driver.options(), database, wakeUps }
          : runDriverOptions({ ...parts, database, wakeUps })),
        ...(lease && { lease }),
        dags: how.dags,
      });
      return {
        job,
        close: async () => {
          await wakeUps.close();
          await database.close();
        },
      };
    },
  });
}

/** `tradewind backfill serve`: runs only backfills, beside any number of schedulers on a shared database. */
export async function startBackfillRunner(config: Config, signal?: AbortSignal): Promise<DrainingProcess> {
  const { parts, close } = await openServiceParts(config, "backfill", {
    signal,
    command: "backfill serve",
    connections: 2,
  });
  const driver = createRunDriver(parts);
  const host = createBackfillHost(parts, { listens: true, driver });
  await host.start();
  return {
    stop: async () => {
      await stopServices([host], parts);
      await driver.stop();
      await close();
    },
    endDrain: () => host.endDrain(),
  };
}

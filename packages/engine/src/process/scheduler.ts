import type { LeaseTimes } from "../job/lease.ts";
import { TimetableClient } from "../plan/timetable-client.ts";
import { SchedulerJob, type SchedulerJobOptions } from "../run/job/scheduler-job.ts";
import type { Config } from "../service/config.ts";
import { startAll } from "../service/service.ts";
import { unknownDags } from "../store/job/served-dags.ts";
import { createBackfillHost } from "./backfill.ts";
import { createNoticeHost } from "./notices.ts";
import {
  type DrainingProcess,
  endDrains,
  openServiceParts,
  type ServiceParts,
  stopServices,
} from "./parts/service-parts.ts";
import { createRunDriver, type RunDriver, runDriverOptions } from "./run-driver.ts";
import { createSignalBridge } from "./signal-bridge.ts";

/** `dags`: serves only runs of these DAGs. `runs`: ends after this many runs. Default: all DAGs, no end. */
export type SchedulerScope = Pick<SchedulerJobOptions, "dags" | "runs">;

export interface SchedulerParts extends ServiceParts, SchedulerScope {
  readonly lease?: LeaseTimes;
  /** Shared with other jobs of the process. Left out: the scheduler has executors of its own. */
  readonly driver?: RunDriver;
}

export function createScheduler(parts: SchedulerParts): SchedulerJob {
  const { dags, driver, lease, runs } = parts;
  const options = driver ? driver.options() : runDriverOptions(parts);
  return new SchedulerJob({
    ...options,
    timetables: (onPlanned) => new TimetableClient({ ...options, dags, onPlanned }),
    ...(lease && { lease }),
    dags,
    runs,
  });
}

/**
 * `tradewind scheduler`: one of any number on a shared database. With `runs`, `finished` resolves when it is time to stop,
 * and it starts no backfill, because it would have to leave the backfill's runs unfinished.
 */
export async function startScheduler(
  config: Config,
  signal?: AbortSignal,
  scope: SchedulerScope = {},
): Promise<DrainingProcess & { readonly finished: Promise<void> }> {
  const { parts, close } = await openServiceParts(config, "scheduler", { signal });
  const { dags, runs } = scope;
  const unknown = dags ? await unknownDags(parts.database, dags) : [];
  if (unknown.length > 0)
    parts.logger.warn("unknown DAGs: their runs are served once they are published", { dags: unknown });
  const driver = createRunDriver(parts);
  const scheduler = createScheduler({ ...parts, ...scope, driver });
  const bridged = await createSignalBridge(parts);
  const services = [
    scheduler,
    ...(runs === undefined ? [createBackfillHost(parts, { dags, driver })] : []),
    createNoticeHost(parts, scheduler),
    ...(bridged ? [bridged.bridge] : []),
  ];
  await startAll(services, parts.logger);
  return {
    finished: scheduler.finished,
    isReady: () => scheduler.isReady(),
    stop: async () => {
      await stopServices(services, parts);
      await driver.stop();
      await bridged?.close();
      await close();
    },
    endDrain: () => endDrains(services),
  };
}

import type { LeaseTimes } from "../job/lease.ts";
import { TimetableClient } from "../plan/timetable-client.ts";
import { SchedulerJob, type SchedulerJobOptions } from "../run/job/scheduler-job.ts";
import type { Config } from "../service/config.ts";
import { startAll } from "../service/service.ts";
import { unknownDags } from "../store/job/served-dags.ts";
import { createBackfillHost } from "./backfill.ts";
import { createNoticeHost } from "./notices.ts";
import { runDriverOptions } from "./run-driver.ts";
import {
  type DrainingProcess,
  endDrains,
  openServiceParts,
  type ServiceParts,
  stopServices,
} from "./service-parts.ts";
import { createSignalBridge } from "./signal-bridge.ts";

/** `dags`: serves only runs of these DAGs. `runs`: ends after this many runs. Default: all DAGs, no end. */
export type SchedulerScope = Pick<SchedulerJobOptions, "dags" | "runs">;

export interface SchedulerParts extends ServiceParts, SchedulerScope {
  readonly lease?: LeaseTimes;
}

/** A scheduler with the local executor of this machine. */
export function createScheduler(parts: SchedulerParts): SchedulerJob {
  const { dags, lease, runs } = parts;
  const options = runDriverOptions(parts);
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
  const scheduler = createScheduler({ ...parts, ...scope });
  const bridged = await createSignalBridge(parts);
  const services = [
    scheduler,
    ...(runs === undefined ? [createBackfillHost(parts, { dags })] : []),
    createNoticeHost(parts, scheduler),
    ...(bridged ? [bridged.bridge] : []),
  ];
  await startAll(services, parts.logger);
  return {
    finished: scheduler.finished,
    stop: async () => {
      await stopServices(services, parts);
      await bridged?.close();
      await close();
    },
    endDrain: () => endDrains(services),
  };
}

import type { LeaseTimes } from "../job/lease.ts";
import { SchedulerJob } from "../schedule/scheduler-job.ts";
import type { Config } from "../service/config.ts";
import { startAll, stopAll } from "../service/service.ts";
import { createBackfillHost } from "./backfill.ts";
import { createDeadlineHost } from "./deadlines.ts";
import { runDriverOptions } from "./run-driver.ts";
import { openServiceParts, type ServiceParts } from "./service-parts.ts";

export interface SchedulerParts extends ServiceParts {
  /** See `LocalExecutorOptions`. */
  readonly ahead?: number;
  readonly lease?: LeaseTimes;
}

/** A scheduler with the local executor of this machine. */
export function createScheduler(parts: SchedulerParts): SchedulerJob {
  const { ahead, lease } = parts;
  return new SchedulerJob({
    ...runDriverOptions(parts, ahead === undefined ? {} : { ahead }),
    ...(lease && { lease }),
  });
}

/** `tradewind scheduler`: one of any number on a shared database. */
export async function startScheduler(config: Config): Promise<{ stop(): Promise<void> }> {
  const { parts, close } = await openServiceParts(config, "scheduler");
  const scheduler = createScheduler(parts);
  const services = [scheduler, createBackfillHost(parts), createDeadlineHost(parts, scheduler)];
  await startAll(services, parts.logger);
  return {
    stop: async () => {
      await stopAll(services, parts.logger);
      await close();
    },
  };
}

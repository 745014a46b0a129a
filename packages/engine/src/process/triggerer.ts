import type { Config } from "../service/config.ts";
import { TriggerRunner } from "../trigger/process/trigger-runner.ts";
import { triggerServices } from "../trigger/triggerer/trigger-services.ts";
import { TriggererJob } from "../trigger/triggerer/triggerer-job.ts";
import type { TriggererOptions } from "../trigger/triggerer/triggerer-options.ts";
import { VERSION } from "../version.ts";
import { createBundleCache } from "./parts/fetch-bundle.ts";
import { openServiceParts, type ServiceParts, stopServices } from "./parts/service-parts.ts";

export interface TriggererParts extends ServiceParts {
  readonly times?: Pick<TriggererOptions, "lease" | "stallMs" | "announceAfterMs">;
}

/** A triggerer with a trigger runner of its own. */
export function createTriggerer(parts: TriggererParts): TriggererJob {
  const { config, database, logger, logs, secretBox, wakeUps, user, times } = parts;
  const { services, mask } = triggerServices(database, secretBox);
  const bundles = createBundleCache(parts);
  const runner = new TriggerRunner({
    services,
    user,
    logger: logger.child({ component: "trigger-runner" }),
    memoryMb: config.triggererMemoryMb,
  });
  bundles.onOtherPackages(() => runner.replaceProcesses());
  return new TriggererJob({
    database,
    runner,
    bundles,
    logs,
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
export async function startTriggerer(
  config: Config,
  signal?: AbortSignal,
): Promise<{ isReady(): boolean; stop(): Promise<void> }> {
  const { parts, close } = await openServiceParts(config, "triggerer", { signal });
  const triggerer = createTriggerer(parts);
  await triggerer.start();
  return {
    isReady: () => triggerer.isReady(),
    stop: async () => {
      await stopServices([triggerer], parts);
      await close();
    },
  };
}

import { SharedExecutor } from "../execute/shared-executor.ts";
import { LargeLengths } from "../run/dispatch/large-lengths.ts";
import type { DagRunJobOptions } from "../run/job/dag-run-job-options.ts";
import { VERSION } from "../version.ts";
import { createExecutors } from "./parts/executors.ts";
import { createBundleCache } from "./parts/fetch-bundle.ts";
import { createLargeOutputs } from "./parts/large-outputs.ts";
import { answerRequests } from "./parts/request-answers.ts";
import type { ServiceParts } from "./parts/service-parts.ts";

/** Together with the grace period and the last writes it fits the 30 s of Kubernetes between SIGTERM and SIGKILL. */
const DRAIN_MS = 20_000;

/**
 * What the jobs of one process that drive runs share: its executors, so that their slots are those of the machine, and the
 * code on its disk.
 */
export interface RunDriver {
  /** For one job; each has its own view of the executors. */
  options(): DagRunJobOptions;
  /** Stops the executors, after the jobs. */
  stop(): Promise<void>;
}

export function createRunDriver(parts: ServiceParts): RunDriver {
  const options = runDriverOptions(parts);
  const { executors, foreign } = options;
  const shared = executors.map((executor) => new SharedExecutor(executor));
  const sharedForeign = foreign && new SharedExecutor(foreign);
  return {
    options: () => ({
      ...options,
      executors: shared.map((each) => each.view()),
      ...(sharedForeign && { foreign: sharedForeign.view() }),
    }),
    stop: async () => {
      await Promise.all([...executors, ...(foreign ? [foreign] : [])].map((executor) => executor.stop(0)));
    },
  };
}

/** The parts of a job that drives runs on this machine, with executors of its own. */
export function runDriverOptions(parts: ServiceParts): DagRunJobOptions {
  const { config, database, logger, logs, wakeUps, user } = parts;
  const outputs = createLargeOutputs(config, database);
  const bundles = createBundleCache(parts);
  const executors = createExecutors(parts, {
    bundles,
    logs,
    parallelism: config.parallelism,
    streamingSlots: config.streamingSlots,
    graceMs: config.stopGraceMs,
    outputs,
    answer: answerRequests(parts),
    logger: logger.child({ component: "executor" }),
    user,
  });
  bundles.onOtherPackages(() => executors.local.replaceUsed());
  return {
    database,
    executors: executors.all,
    foreign: executors.foreign,
    bundles,
    logs,
    logger,
    wakeUps,
    version: VERSION,
    lengths: new LargeLengths(outputs),
    maxMapLength: config.maxMapLength,
    onFailure: config.onFailure,
    isAlone: config.databaseUrl === undefined,
    drainMs: config.drainMs ?? DRAIN_MS,
    stopGraceMs: config.stopGraceMs,
    user,
  };
}

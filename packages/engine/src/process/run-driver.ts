import { answerFrom } from "../execute/attempt/answer-request.ts";
import { LargeLengths } from "../run/dispatch/large-lengths.ts";
import { taskServices } from "../run/dispatch/task-services.ts";
import type { DagRunJobOptions } from "../run/job/dag-run-job-options.ts";
import { checkEngineTrigger } from "../trigger/engine/engine-triggers.ts";
import { VERSION } from "../version.ts";
import { createExecutors } from "./executors.ts";
import { createBundleCache } from "./fetch-bundle.ts";
import { createLargeOutputs } from "./large-outputs.ts";
import type { ServiceParts } from "./service-parts.ts";

/** Together with the grace period and the last writes it fits the 30 s of Kubernetes between SIGTERM and SIGKILL. */
const DRAIN_MS = 20_000;

/** The parts of a job that drives runs on this machine: the same for schedulers and backfills. */
export function runDriverOptions(parts: ServiceParts): DagRunJobOptions {
  const { config, database, logger, logs, secretBox, wakeUps, user } = parts;
  const outputs = createLargeOutputs(config, database);
  const bundles = createBundleCache(parts);
  const executors = createExecutors(parts, {
    bundles,
    logs,
    parallelism: config.parallelism,
    streamingSlots: config.streamingSlots,
    graceMs: config.stopGraceMs,
    outputs,
    answer: answerFrom(
      taskServices({
        database,
        secretBox,
        check: checkEngineTrigger,
        onNews: (news) => wakeUps.send(news),
      }),
    ),
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

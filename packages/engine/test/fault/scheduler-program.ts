/**
 * A scheduler, or with FAULT_JOB=backfill a backfill job, as a separate process, for tests that kill, stop and cut it off.
 * Like `tradewind scheduler`, except that its lease can be shorter, and that lost attempts never count as a failure of the
 * task: there are many faults, and the result must stay the scripted one.
 */

import { BundleCache } from "../../src/code/bundle-cache.ts";
import { answerFrom } from "../../src/execute/attempt/answer-request.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import { TimetableClient } from "../../src/plan/timetable-client.ts";
import { createExecutors } from "../../src/process/parts/executors.ts";
import { fetchBundle } from "../../src/process/parts/fetch-bundle.ts";
import { createLargeOutputs } from "../../src/process/parts/large-outputs.ts";
import { LargeLengths } from "../../src/run/dispatch/large-lengths.ts";
import { taskServices } from "../../src/run/dispatch/task-services.ts";
import { BackfillJob } from "../../src/run/job/backfill-job.ts";
import { SchedulerJob } from "../../src/run/job/scheduler-job.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { requireDatabaseUrl, resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger } from "../../src/service/logger.ts";
import { Database } from "../../src/store/database/database.ts";
import { checkEngineTrigger } from "../../src/trigger/engine/engine-triggers.ts";
import { VERSION } from "../../src/version.ts";
import { givenLease, serve } from "./program.ts";

const config = resolveConfig({});
const lease = givenLease();
const logger = createLogger({ level: "debug", format: "json" });
const home = await openHome(config.home);
const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
const database = Database.connect(requireDatabaseUrl(config, "scheduler"), { max: 6 });
const wakeUps = new WakeUps(database);
const outputs = createLargeOutputs(config, database);
const Job = process.env.FAULT_JOB === "backfill" ? BackfillJob : SchedulerJob;
const bundles = new BundleCache(home.bundles, (hash) => fetchBundle(database, hash));
const logs = new LogFolder(home.logs);
const executors = createExecutors(
  { config, database, home, logger, logs, secretBox, wakeUps },
  {
    parallelism: config.parallelism,
    outputs,
    answer: answerFrom(taskServices({ database, secretBox, check: checkEngineTrigger })),
    bundles,
    logs,
    logger,
  },
);
const scheduler = new Job({
  database,
  executors: executors.all,
  foreign: executors.foreign,
  lengths: new LargeLengths(outputs),
  bundles,
  timetables: (onPlanned: () => void) => new TimetableClient({ database, bundles, logger, onPlanned }),
  logs,
  logger,
  wakeUps,
  version: VERSION,
  infraLossBudget: 10_000,
  ...(config.drainMs !== undefined && { drainMs: config.drainMs, stopGraceMs: config.stopGraceMs }),
  ...(lease && { lease }),
});
await serve({
  database,
  logger,
  start: () => scheduler.start(),
  stop: async () => {
    await scheduler.drain();
    await scheduler.stop();
    await wakeUps.close();
    await database.close();
  },
});

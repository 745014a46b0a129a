/**
 * A triggerer as a separate process, for tests that kill, stop and cut it off. Like `tradewind triggerer`, except that its
 * lease can be shorter, that it can run without wake-ups, and that it reports the pid of its runner.
 */

import { writeFileSync } from "node:fs";
import { BundleCache } from "../../src/code/bundle-cache.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import { fetchBundle } from "../../src/process/parts/fetch-bundle.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { requireDatabaseUrl, resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger } from "../../src/service/logger.ts";
import { Database } from "../../src/store/database/database.ts";
import { TriggerRunner } from "../../src/trigger/process/trigger-runner.ts";
import { triggerServices } from "../../src/trigger/triggerer/trigger-services.ts";
import { TriggererJob } from "../../src/trigger/triggerer/triggerer-job.ts";
import { VERSION } from "../../src/version.ts";
import { givenLease, serve } from "./program.ts";
import { runnerFile } from "./triggerer-process.ts";

const TELL_MS = 20;
const config = resolveConfig({});
const lease = givenLease();
const logger = createLogger({ level: "debug", format: "json" });
const home = await openHome(config.home);
const secretBox = await SecretBox.load(home.secretKey);
const database = Database.connect(requireDatabaseUrl(config, "triggerer"), { max: 4 });
const wakeUps = new WakeUps(database, { enabled: process.env.FAULT_NOTIFY !== "off" });
const { services, mask } = triggerServices(database, secretBox);
const runner = new TriggerRunner({ services, logger: logger.child({ component: "trigger-runner" }) });
const triggerer = new TriggererJob({
  database,
  runner,
  bundles: new BundleCache(home.bundles, (hash) => fetchBundle(database, hash)),
  logs: new LogFolder(home.logs),
  mask,
  logger,
  wakeUps,
  version: VERSION,
  capacity: config.triggererCapacity,
  queues: config.triggererQueues,
  ...(lease && { lease }),
});
let told = "";
const report = () => {
  const pid = String(runner.pid ?? "");
  if (pid !== told) writeFileSync(runnerFile(config.home, process.pid), pid);
  told = pid;
};
await serve({
  database,
  logger,
  start: async () => {
    await triggerer.start();
    setInterval(report, TELL_MS);
    report();
  },
  stop: async () => {
    await triggerer.stop();
    await wakeUps.close();
    await database.close();
  },
});

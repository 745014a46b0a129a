/**
 * A scheduler, or with FAULT_JOB=backfill a backfill job, as a process of its own, for tests that kill, stop and cut it off. As `tradewind scheduler`, except that
 * its lease can be shorter, and that no number of lost attempts counts as a failure of the task: the faults here are
 * many, and the outcome must stay the scripted one.
 */
import { BundleCache } from "../../src/execute/bundle-cache.ts";
import { LocalExecutor } from "../../src/execute/local-executor.ts";
import { fetchBundle } from "../../src/processes/fetch-bundle.ts";
import { createLargeOutputs } from "../../src/processes/large-outputs.ts";
import { BackfillJob } from "../../src/schedule/backfill-job.ts";
import { LargeLengths } from "../../src/schedule/large-lengths.ts";
import { SchedulerJob } from "../../src/schedule/scheduler-job.ts";
import { taskServices } from "../../src/schedule/task-services.ts";
import { requireDatabaseUrl, resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger } from "../../src/service/logger.ts";
import { SecretBox } from "../../src/service/secret-box.ts";
import { WakeUps } from "../../src/signal/wake-up.ts";
import { CommitUnknownError, Database, isTransient } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrate.ts";
import { VERSION } from "../../src/version.ts";

/** The exit code of a scheduler that could not come up for want of a database. */
const DATABASE_AWAY = 75;
const config = resolveConfig({});
const [ttlMs, renewMs, marginMs] = (process.env.FAULT_LEASE ?? "").split(",").map(Number);
const logger = createLogger({ level: "debug", format: "json" });
const home = await openHome(config.home);
const secretBox = await SecretBox.load(home.secretKey);
const database = Database.connect(requireDatabaseUrl(config, "scheduler"), { max: 6 });
const wakeUps = new WakeUps(database);
const outputs = createLargeOutputs(config, database);
const Job = process.env.FAULT_JOB === "backfill" ? BackfillJob : SchedulerJob;
const scheduler = new Job({
  database,
  executors: [
    new LocalExecutor({
      parallelism: config.parallelism,
      outputs,
      services: taskServices(database, secretBox),
      logger,
    }),
  ],
  lengths: new LargeLengths(outputs),
  bundles: new BundleCache(home.bundles, (hash) => fetchBundle(database, hash)),
  logsDir: home.logs,
  logger,
  wakeUps,
  version: VERSION,
  infraLossBudget: 10_000,
  ...(ttlMs && renewMs && marginMs ? { lease: { ttlMs, renewMs, marginMs } } : {}),
});
try {
  await migrate(database);
  await scheduler.start();
} catch (error) {
  if (!isTransient(error) && !(error instanceof CommitUnknownError)) throw error;
  logger.warn("cannot start without the database", { error: String(error) });
  process.exit(DATABASE_AWAY);
}
process.on("SIGTERM", async () => {
  await scheduler.drain();
  await scheduler.stop();
  await wakeUps.close();
  await database.close();
  process.exit(0);
});
// However the test ends: without the one who started it, a scheduler goes too.
process.stdin.on("end", () => process.exit(1)).resume();
process.stdout.write("ready\n");

/** A host of deadlines as a separate process, for tests that kill it. FAULT_TIMES: an attempt's limit, its lease. */

import { WakeUps } from "../../src/job/wake-up.ts";
import { NoticeHost } from "../../src/notify/notice-host.ts";
import { requireDatabaseUrl, resolveConfig } from "../../src/service/config.ts";
import { createLogger } from "../../src/service/logger.ts";
import { Database } from "../../src/store/database/database.ts";

const [attemptMs = 1_000, leaseMs = 2_000] = (process.env.FAULT_TIMES ?? "").split(",").map(Number);
const database = Database.connect(requireDatabaseUrl(resolveConfig({}), "deadlines"), { max: 2 });
const host = new NoticeHost({
  database,
  logger: createLogger({ level: "debug", format: "json" }),
  wakeUps: new WakeUps(database),
  connection: async () => undefined,
  times: { attemptMs, leaseMs },
});
await host.start();
// Exits with its parent process, even if the test crashes.
process.stdin.on("end", () => process.exit(1)).resume();
process.stdout.write("ready\n");

/** An API server as a separate process, like `tradewind api`, except that the leases of its workers can be shorter. */
import { WakeUps } from "../../src/job/wake-up.ts";
import { createApi } from "../../src/process/api.ts";
import { openLogs } from "../../src/process/parts/log-store.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { requireDatabaseUrl, resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger } from "../../src/service/logger.ts";
import { Database } from "../../src/store/database/database.ts";
import { serve } from "./program.ts";

const config = resolveConfig({});
const logger = createLogger({ level: "debug", format: "json" });
const home = await openHome(config.home);
const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
const database = Database.connect(requireDatabaseUrl(config, "api"), { max: 8 });
const wakeUps = new WakeUps(database);
const logs = await openLogs(config);
const { FAULT_WORKER_LEASE_MS: leaseMs } = process.env;
const parts = { config, database, home, logger, logs, secretBox, wakeUps };
const { api, close } = await createApi({ ...parts, ...(leaseMs && { workerLeaseMs: Number(leaseMs) }) });
await serve({
  database,
  logger,
  start: () => api.start(),
  stop: async () => {
    await api.stop();
    await close();
    await logs.close();
    await wakeUps.close();
    await database.close();
  },
});

/** A worker as a separate process, for tests that kill, stop and cut it off. */
import { startWorker } from "../../src/process/worker.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { isUp } from "./program.ts";

const {
  FAULT_QUEUES = "default",
  FAULT_SLOTS,
  REDIS_URL = "",
  TRADEWIND_TOKEN = "",
  TRADEWIND_URL = "",
} = process.env;
const config = resolveConfig(
  {},
  { ...process.env, TRADEWIND_LOG_LEVEL: "debug", TRADEWIND_LOG_FORMAT: "json" },
);
const worker = await startWorker(config, {
  ...{ url: TRADEWIND_URL, token: TRADEWIND_TOKEN, redisUrl: REDIS_URL },
  ...{ queues: FAULT_QUEUES.split(","), slots: Number(FAULT_SLOTS) },
});
process.on("SIGTERM", async () => {
  await worker.stop();
  process.exit(0);
});
isUp();

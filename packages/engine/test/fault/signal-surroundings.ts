/** The environment of the programs of the signal storm, and their shutdown. */
import { flushCompileCache } from "node:module";
import { requireDatabaseUrl, resolveConfig } from "../../src/service/config.ts";
import { createLogger } from "../../src/service/logger.ts";
import { Database } from "../../src/store/database/database.ts";
import { SendLedger } from "./send-ledger.ts";
import { Plan } from "./signal-plan.ts";

const { FAULT_FOLDER = "", FAULT_NOTIFY, FAULT_SCALE, FAULT_SEED } = process.env;

export const config = resolveConfig({});
export const logger = createLogger({ level: "info", format: "json" });
export const isHearing = FAULT_NOTIFY !== "off";
/** The folder of the files that control the processes. */
export const folder = FAULT_FOLDER;
export const endFile = `${folder}/over`;
export const plan = new Plan(Number(FAULT_SEED), Number(FAULT_SCALE));

export function connect(): Database {
  return Database.connect(requireDatabaseUrl(config, "signal storm"), { max: 8 });
}

export function sendLedger(): SendLedger {
  return new SendLedger(`${FAULT_FOLDER}/sent`, plan);
}

/** Reports that the process is up, and stops it on request. */
export function run(stop: () => Promise<void> = async () => {}): void {
  process.on("SIGTERM", async () => {
    await stop();
    process.exit(0);
  });
  // Exits with its parent process, even if the test crashes.
  process.stdin.on("end", () => process.exit(1)).resume();
  process.stdout.write("ready\n");
  // A killed process would not write its compile cache.
  flushCompileCache();
}

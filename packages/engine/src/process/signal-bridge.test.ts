import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { testDatabase } from "../../test/support/test-database.ts";
import { resolveConfig } from "../service/config.ts";
import { adhoc } from "../store/database/database.ts";
import { startScheduler } from "./scheduler.ts";

async function configured(databaseUrl: string, module: string) {
  const folder = await mkdtemp(join(tmpdir(), "tw-bridge-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "service.mjs");
  await writeFile(path, module);
  return resolveConfig(
    { home: join(folder, "home"), dags: folder },
    { DATABASE_URL: databaseUrl, TRADEWIND_SIGNALS: path, TRADEWIND_LOG_LEVEL: "error" },
  );
}

it("runs the bridge to the configured signal service in a scheduler", async () => {
  const [inside, outside] = [await testDatabase(), await testDatabase()];
  const at = (path: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, path)).href);
  const config = await configured(
    inside.url,
    `import { Database } from ${at("../store/database/database.ts")};
     import { PostgresSignals } from ${at("../signal/postgres-signals.ts")};
     import { WakeUps } from ${at("../job/wake-up.ts")};
     export default () => {
       const database = Database.connect(${JSON.stringify(outside.url)}, { max: 4 });
       const wakeUps = new WakeUps(database);
       const signals = new PostgresSignals({ database, wakeUps });
       const close = signals.close.bind(signals);
       signals.close = async () => { await close(); await wakeUps.close(); await database.close(); };
       return signals;
     };`,
  );
  const scheduler = await startScheduler(config);
  const held = adhoc("SELECT service FROM signal_bridge WHERE holder IS NOT NULL");
  while ((await inside.db.rows(held)).length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(await inside.db.rows(held)).toEqual([{ service: config.signals }]);
  await scheduler.stop();
  expect(await inside.db.rows(held)).toEqual([]);
});

it("does not start a scheduler with an unusable signal service", async () => {
  const { url } = await testDatabase();
  const config = await configured(url, "export default () => ({ send() {} });");
  await expect(startScheduler(config)).rejects.toMatchObject({ code: "SIGNAL_SERVICE_MODULE" });
});

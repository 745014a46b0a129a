import { ApiServer } from "../api/api-server.ts";
import type { Change } from "../api/context.ts";
import { BundleCache } from "../execute/bundle-cache.ts";
import { TimetableDates } from "../execute/timetable-dates.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { ensureToken, openHome } from "../service/home.ts";
import { createLogger } from "../service/logger.ts";
import { SecretBox } from "../service/secret-box.ts";
import { startAll, stopAll } from "../service/service.ts";
import { openSignals } from "../signal/configured-service.ts";
import { WakeUps } from "../signal/wake-up.ts";
import { migrate } from "../store/migrate.ts";
import { reachDatabase } from "../store/reach-database.ts";
import { runEdits } from "../store/run-edit.ts";
import { ensureAdminToken } from "../store/tokens.ts";
import { VERSION } from "../version.ts";
import { fetchBundle } from "./fetch-bundle.ts";
import { JobHeartbeat } from "./job-heartbeat.ts";
import { createLargeOutputs } from "./large-outputs.ts";
import { warnOfUnreadable } from "./stored-secrets.ts";

/** `tradewind api`: the REST API on a shared database. Its admin token is that of its home folder. */
export async function startApi(config: Config): Promise<{ url: string; stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const home = await openHome(config.home);
  const secretBox = await SecretBox.load(home.secretKey, process.env.TRADEWIND_SECRET_KEY);
  const database = await reachDatabase(requireDatabaseUrl(config, "api"), {
    max: config.databaseConnections,
    applicationName: "tradewind api",
  });
  await migrate(database);
  await ensureAdminToken(database, await ensureToken(home));
  await warnOfUnreadable({ database, logger, secretBox });
  const wakeUps = new WakeUps(database);
  const signals = await openSignals({ config, database, logger, wakeUps });
  const bundles = new BundleCache(home.bundles, (hash) => fetchBundle(database, hash));
  const timetables = new TimetableDates({ bundles });
  const outputs = createLargeOutputs(config, database);
  const api = new ApiServer({
    database,
    outputs,
    logger: logger.child({ component: "api" }),
    config: { host: config.host, port: config.port, version: VERSION },
    secretBox,
    logsDir: home.logs,
    runEdits,
    signals,
    timetables,
    wakeUps,
    notify: (change) => passOn(change, wakeUps),
  });
  const heartbeat = new JobHeartbeat("api", database, logger);
  await startAll([api, heartbeat], logger);
  return {
    url: api.url,
    stop: async () => {
      await stopAll([api, heartbeat], logger);
      await timetables.stop();
      await outputs.close();
      await signals.close();
      wakeUps.close();
      await database.close();
    },
  };
}

/** What a change made through the API means to schedulers. */
export function passOn(change: Change, wakeUps: WakeUps): void {
  switch (change.kind) {
    case "run_created":
      wakeUps.send("runs");
      return;
    case "run_edited":
    case "run_deleted":
      for (const id of change.dagRunIds) wakeUps.send(`run:${id}`);
      return;
    case "dag_changed":
      wakeUps.send("dags");
      return;
    case "backfill_changed":
      wakeUps.send("backfills");
      return;
    case "pool_changed":
      wakeUps.send("pools");
      return;
    case "signal_sent":
      wakeUps.send("fired");
      wakeUps.send("signals");
      return;
    case "signals_sent":
      wakeUps.send("signals");
      return;
    case "deed_done":
      wakeUps.send("states");
  }
}

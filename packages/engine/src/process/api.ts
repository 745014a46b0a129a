import { ApiServer } from "../api/server/api-server.ts";
import type { Change } from "../api/server/context.ts";
import type { WakeUps } from "../job/wake-up.ts";
import { TimetableDates } from "../plan/timetable-dates.ts";
import type { Config } from "../service/config.ts";
import { ensureToken } from "../service/home.ts";
import { startAll } from "../service/service.ts";
import { openSignals } from "../signal/configured-service.ts";
import type { SignalService } from "../signal/signal-service.ts";
import { ensureAdminToken } from "../store/access/tokens.ts";
import { VERSION } from "../version.ts";
import { createBundleCache, fetchBundle } from "./parts/fetch-bundle.ts";
import { JobHeartbeat } from "./parts/job-heartbeat.ts";
import { createLargeOutputs } from "./parts/large-outputs.ts";
import { answerRequests } from "./parts/request-answers.ts";
import { openServiceParts, type ServiceParts, stopServices } from "./parts/service-parts.ts";

export interface ApiParts extends ServiceParts {
  readonly workerLeaseMs?: number;
}

/** The REST API and its dependencies; call `close` after it has stopped. */
export async function createApi(
  parts: ApiParts,
): Promise<{ readonly api: ApiServer; readonly signals: SignalService; close(): Promise<void> }> {
  const { config, database, logger, logs, secretBox, wakeUps, user } = parts;
  const signals = await openSignals({ config, database, logger, wakeUps });
  const bundles = createBundleCache(parts);
  const timetables = new TimetableDates({ bundles, user });
  const outputs = createLargeOutputs(config, database);
  const api = new ApiServer({
    database,
    outputs,
    logger: logger.child({ component: "api" }),
    config: { host: config.host, port: config.port, publicUrl: config.publicUrl, version: VERSION },
    secretBox,
    logs,
    signals,
    timetables,
    wakeUps,
    execution: {
      outputs,
      answer: answerRequests(parts),
      fetchBundle: (hash) => fetchBundle(database, hash),
      workerLeaseMs: parts.workerLeaseMs,
    },
    notify: (change) => passOn(change, wakeUps),
  });
  return {
    api,
    signals,
    close: async () => {
      await timetables.stop();
      await outputs.close();
      await signals.close();
    },
  };
}

/** `tradewind api`: the REST API on a shared database. Its admin token is in its home folder. */
export async function startApi(
  config: Config,
  signal?: AbortSignal,
): Promise<{ url: string; stop(): Promise<void> }> {
  const { parts, close } = await openServiceParts(config, "api", { signal });
  const { database, home, logger } = parts;
  await ensureAdminToken(database, await ensureToken(home));
  const created = await createApi(parts);
  const services = [created.api, new JobHeartbeat("api", database, logger)];
  await startAll(services, logger);
  return {
    url: created.api.url,
    stop: async () => {
      await stopServices(services, parts);
      await created.close();
      await close();
    },
  };
}

/** Wakes the schedulers after a change made through the API. */
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
    case "worker_changed":
      wakeUps.send("assignments");
      return;
    case "approval_answered":
      wakeUps.send("fired");
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

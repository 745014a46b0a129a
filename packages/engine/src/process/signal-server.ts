import { WakeUps } from "../job/wake-up.ts";
import { type Config, requireDatabaseUrl } from "../service/config.ts";
import { ensureToken, openHome } from "../service/home.ts";
import { createLogger, type Logger } from "../service/logger.ts";
import { openSignals } from "../signal/configured-service.ts";
import type { GrpcSignalServer } from "../signal/grpc/server.ts";
import type { SignalService } from "../signal/signal-service.ts";
import { ensureAdminToken, findToken } from "../store/access/tokens.ts";
import type { Database } from "../store/database/database.ts";
import { requireSchema } from "../store/database/migrate.ts";
import { reachDatabase } from "../store/database/reach-database.ts";
import { stopServices } from "./parts/service-parts.ts";

const DEFAULT_PORT = 8081;

/** The signal service over gRPC; empty if no port is configured. */
export async function createSignalServer(parts: {
  readonly config: Pick<Config, "host" | "signalsPort" | "signalsTlsCert" | "signalsTlsKey" | "signalsTlsCa">;
  readonly database: Database;
  readonly logger: Logger;
  readonly signals: SignalService;
}): Promise<GrpcSignalServer[]> {
  const { config, database, logger, signals } = parts;
  if (config.signalsPort === undefined) return [];
  const { GrpcSignalServer } = await import("../signal/grpc/server.ts");
  return [
    new GrpcSignalServer({
      service: signals,
      authenticate: async (token) => {
        const row = await findToken(database, token);
        return row?.role === "admin" ? row.name : undefined;
      },
      host: config.host,
      port: config.signalsPort,
      tls: { cert: config.signalsTlsCert, key: config.signalsTlsKey, ca: config.signalsTlsCa },
      logger: logger.child({ component: "signals" }),
    }),
  ];
}

/** `tradewind signals serve`: one of any number on a shared database. Its admin token is in its home folder. */
export async function startSignalServer(
  config: Config,
  signal?: AbortSignal,
): Promise<{ url: string; stop(): Promise<void> }> {
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const database = await reachDatabase(
    requireDatabaseUrl(config, "signals serve"),
    { max: config.databaseConnections, applicationName: "tradewind signals" },
    { logger, signal },
  );
  await requireSchema(database);
  await ensureAdminToken(database, await ensureToken(await openHome(config.home)));
  const wakeUps = new WakeUps(database);
  const signals = await openSignals({ config, database, logger, wakeUps });
  const served = { ...config, signalsPort: config.signalsPort ?? DEFAULT_PORT };
  const [server] = await createSignalServer({ config: served, database, logger, signals });
  const stop = async () => {
    await stopServices([server!], { config, database, logger });
    await signals.close();
    await wakeUps.close();
    await database.close();
  };
  try {
    await server!.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: server!.url, stop };
}

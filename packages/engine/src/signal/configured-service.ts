/** The signal service that the configuration names. */
import type { WakeUps } from "../job/wake-up.ts";
import type { Config } from "../service/config.ts";
import { importConfigured } from "../service/configured-module.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import type { Database } from "../store/database/database.ts";
import { PostgresSignals } from "./postgres-signals.ts";
import type { SignalService } from "./signal-service.ts";

export interface SignalParts {
  readonly config: Pick<Config, "signals" | "signalsToken"> &
    Partial<Pick<Config, "signalsCa" | "signalsClientCert" | "signalsClientKey">>;
  readonly database: Database;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
}

/** The default export of a user-defined module. */
export type SignalServiceFactory = (parts: SignalParts) => SignalService | Promise<SignalService>;

export async function openSignals(parts: SignalParts): Promise<SignalService> {
  const { config, database, wakeUps } = parts;
  const logger = parts.logger.child({ component: "signals" });
  if (config.signals === "postgres") return new PostgresSignals({ database, logger, wakeUps });
  if (/^grpcs?:\/\//.test(config.signals)) {
    // Loaded lazily: most processes never need it, and it is slow to load.
    const { SignalClient } = await import("./grpc/client.ts");
    const { signals, signalsCa: ca, signalsClientCert: cert, signalsClientKey: key } = config;
    const token = config.signalsToken ?? "";
    return SignalClient.connect(signals, { token, logger, tls: { ca, cert, key } });
  }
  return fromModule(config.signals, { ...parts, logger });
}

async function fromModule(path: string, parts: SignalParts): Promise<SignalService> {
  const refused = (why: string, cause?: unknown) =>
    new EngineError(
      "SIGNAL_SERVICE_MODULE",
      `TRADEWIND_SIGNALS names the module ${path}, which provides no signal service: ${why}.`,
      { cause },
    );
  let module: { default?: unknown };
  try {
    module = await importConfigured(path);
  } catch (error) {
    throw refused(messageOf(error), error);
  }
  if (typeof module.default !== "function") throw refused("its default export is not a function");
  const service = await (module.default as SignalServiceFactory)(parts);
  const missing = METHODS.filter((name) => typeof service?.[name] !== "function");
  if (missing.length > 0) throw refused(`the service that it creates lacks ${missing.join(", ")}`);
  return service;
}

const METHODS = [
  "send",
  "list",
  "position",
  "subscribe",
  "readKey",
  "listen",
  "deadLetters",
  "close",
] as const satisfies readonly (keyof SignalService)[];

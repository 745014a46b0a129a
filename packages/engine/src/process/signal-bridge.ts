import { SignalBridge } from "../signal/bridge/signal-bridge.ts";
import { openSignals } from "../signal/configured-service.ts";
import type { ServiceParts } from "./parts/service-parts.ts";

/**
 * Connects the configured signal service to scheduling; null if the service is the database itself. Runs beside each
 * scheduler; one of them holds it. A service that cannot be created fails the start.
 */
export async function createSignalBridge({
  config,
  database,
  logger,
  wakeUps,
}: ServiceParts): Promise<{ readonly bridge: SignalBridge; close(): Promise<void> } | null> {
  if (config.signals === "postgres") return null;
  const signals = await openSignals({ config, database, logger, wakeUps });
  const bridge = new SignalBridge({
    database,
    signals,
    service: config.signals,
    wakeUps,
    logger: logger.child({ component: "signal-bridge" }),
  });
  return { bridge, close: () => signals.close() };
}

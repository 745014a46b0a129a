import { SignalBridge } from "../signal/bridge/signal-bridge.ts";
import { openSignals } from "../signal/configured-service.ts";
import type { ServiceParts } from "./service-parts.ts";

/**
 * What lets the configured signal service drive scheduling; null: it is the database's own. Beside each scheduler: one of
 * them holds it. A service that cannot be made fails the start.
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

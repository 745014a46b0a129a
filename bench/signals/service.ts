/** A signal service as in a separate process: with its own connections. */

import { WakeUps } from "../../packages/engine/src/job/wake-up.ts";
import { createLogger } from "../../packages/engine/src/service/logger.ts";
import { PostgresSignals } from "../../packages/engine/src/signal/postgres-signals.ts";
import type { SignalService } from "../../packages/engine/src/signal/signal-service.ts";
import { Database } from "../../packages/engine/src/store/database/database.ts";

export type Way =
  | { readonly kind: "postgres"; readonly url: string; readonly notify: boolean }
  | { readonly kind: "grpc" | "http"; readonly url: string; readonly token: string };

/** Shows why a client retries. */
const logger = createLogger({ level: "warn", format: "pretty" });

export async function openService(way: Way): Promise<{ service: SignalService; close(): Promise<void> }> {
  if (way.kind === "postgres") {
    const database = Database.connect(way.url, { applicationName: "tradewind bench signals" });
    const wakeUps = new WakeUps(database, { enabled: way.notify });
    const service = new PostgresSignals({ database, logger, wakeUps });
    return {
      service,
      close: async () => {
        await service.close();
        await wakeUps.close();
        await database.close();
      },
    };
  }
  const { url, token } = way;
  const { SignalClient } = await import("../../packages/engine/src/signal/grpc/client.ts");
  const { HttpSignals } = await import("../../packages/engine/src/signal/http-signals.ts");
  const service =
    way.kind === "grpc"
      ? SignalClient.connect(url, { token, logger })
      : HttpSignals.connect(url, { token, logger });
  return { service, close: () => service.close() };
}

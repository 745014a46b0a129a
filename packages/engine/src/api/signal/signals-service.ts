/** The signal service of an API server, and the mapping of its errors. */
import { EngineError } from "../../service/errors.ts";
import { PostgresSignals } from "../../signal/postgres-signals.ts";
import type { SignalService } from "../../signal/signal-service.ts";
import type { ApiApp, ApiOptions } from "../server/context.ts";
import { invalid, Problem } from "../server/problem.ts";

const services = new WeakMap<ApiOptions, SignalService>();

/** The given service, else one on the API's own database, closed with the API. */
export function signalsOf(app: ApiApp, options: ApiOptions): SignalService {
  const known = options.signals ?? services.get(options);
  if (known !== undefined) return known;
  const { database, logger, wakeUps } = options;
  const service = new PostgresSignals({
    database,
    logger,
    wakeUps: {
      listen: (onTopic) => wakeUps.listen(onTopic),
      onLocal: (onTopic) => wakeUps.onLocal(onTopic),
      wantStates: (who, isWanted) => wakeUps.wantStates(who, isWanted),
      send: () => options.notify({ kind: "signals_sent" }),
    },
  });
  services.set(options, service);
  app.addHook("onClose", () => service.close());
  return service;
}

/** Maps errors of the service to problems by code. */
export async function signalProblem<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const status = STATUS[error.code];
    if (error.code === "SIGNAL_POSITION_INVALID") throw invalid(["query", "position"], error.message);
    throw status === undefined ? error : new Problem(status, error.code, error.message);
  }
}

const STATUS: Readonly<Record<string, number>> = {
  SIGNAL_INVALID: 422,
  SIGNAL_LISTENER_LOST: 409,
  SIGNAL_SEQUENCE_REUSED: 409,
  SIGNAL_SERVICE_AWAY: 503,
  SIGNAL_SERVICE_CLOSED: 503,
};

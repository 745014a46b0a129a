/** `tradewind signals serve` as a separate process, for tests that kill it. */
import { startSignalServer } from "../../src/process/signal-server.ts";
import { EngineError } from "../../src/service/errors.ts";
import { CommitUnknownError, isTransient } from "../../src/store/database/database.ts";
import { config, logger, run } from "./signal-surroundings.ts";

/** The exit code of a server that could not start without the database. */
const DATABASE_AWAY = 75;

const server = await startSignalServer({ ...config, logFormat: "json" }).catch((refused: unknown) => {
  // Wrapped in a readable error, with the original one as its cause.
  const error = refused instanceof EngineError ? refused.cause : refused;
  if (!isTransient(error) && !(error instanceof CommitUnknownError)) throw refused;
  logger.warn("cannot start without the database", { error: String(error) });
  process.exit(DATABASE_AWAY);
});
run(() => server.stop());

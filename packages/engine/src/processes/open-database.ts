import { join } from "node:path";
import type { Config } from "../service/config.ts";
import { findStandalone, openHome } from "../service/home.ts";
import type { Logger } from "../service/logger.ts";
import { Database } from "../store/database.ts";
import { EmbeddedPostgres } from "../store/embedded/embedded-postgres.ts";

export interface OpenedDatabase {
  readonly database: Database;
  /** Closes connections, and stops the embedded server unless it is a standalone's. */
  stop(): Promise<void>;
}

export interface OpenOptions {
  readonly applicationName?: string;
  /** For the process that keeps the embedded server up: brings it back when it dies. */
  readonly supervise?: Logger;
}

/** DATABASE_URL if given, else the embedded PostgreSQL of the home: adopted when it runs, started when it does not. */
export async function openDatabase(config: Config, options: OpenOptions = {}): Promise<OpenedDatabase> {
  const connect = (url: string) =>
    Database.connect(url, {
      max: config.databaseConnections,
      applicationName: options.applicationName ?? "tradewind",
    });
  if (config.databaseUrl !== undefined) {
    const database = connect(config.databaseUrl);
    return { database, stop: () => database.close() };
  }
  const home = await openHome(config.home);
  const server = await EmbeddedPostgres.start({
    dataDir: home.postgres,
    logFile: join(home.logs, "postgres.log"),
    ...(options.supervise ? { respawn: true, logger: options.supervise } : {}),
  });
  // A standalone on this home keeps its server: whoever only borrows it must not stop it.
  const isBorrowed = (await findStandalone(home)) !== undefined;
  if (isBorrowed) server.release();
  const database = connect(server.url);
  return {
    database,
    stop: async () => {
      await database.close();
      if (!isBorrowed) await server.stop("fast");
    },
  };
}

import { join } from "node:path";
import type { Config } from "../../service/config.ts";
import { findStandalone, openHome } from "../../service/home.ts";
import type { Logger } from "../../service/logger.ts";
import { Database } from "../../store/database/database.ts";
import { type DatabaseWait, reachDatabase } from "../../store/database/reach-database.ts";
import { EmbeddedPostgres } from "../../store/embedded/embedded-postgres.ts";

export interface OpenedDatabase {
  readonly database: Database;
  /** Separate connections to the same database, so that the load of one part does not delay another. */
  connect(applicationName: string): Database;
  /** Closes connections, and stops the embedded server unless it belongs to a standalone. */
  stop(): Promise<void>;
}

export interface OpenOptions {
  readonly applicationName?: string;
  /** For the process that supervises the embedded server: restarts it when it dies. */
  readonly supervise?: Logger;
  /** For a service: waits until the database at DATABASE_URL answers. */
  readonly wait?: DatabaseWait;
}

/** DATABASE_URL if given, else the embedded PostgreSQL of the home: adopted if it runs, otherwise started. */
export async function openDatabase(config: Config, options: OpenOptions = {}): Promise<OpenedDatabase> {
  const name = options.applicationName ?? "tradewind";
  const connections = (applicationName: string) => ({ max: config.databaseConnections, applicationName });
  if (config.databaseUrl !== undefined) {
    const database = await reachDatabase(config.databaseUrl, connections(name), options.wait);
    const connect = (applicationName: string) => database.sibling(connections(applicationName));
    return { database, connect, stop: () => database.close() };
  }
  const home = await openHome(config.home);
  const server = await EmbeddedPostgres.start({
    dataDir: home.postgres,
    logFile: join(home.logs, "postgres.log"),
    ...(options.supervise ? { respawn: true, logger: options.supervise } : {}),
  });
  // A standalone on this home owns the server: another process must not stop it.
  const isBorrowed = (await findStandalone(home)) !== undefined;
  if (isBorrowed) server.release();
  const database = Database.connect(server.url, connections(name));
  return {
    database,
    connect: (applicationName) => database.sibling(connections(applicationName)),
    stop: async () => {
      await database.close();
      if (!isBorrowed) await server.stop("fast");
    },
  };
}

import { join } from "node:path";
import type { Config } from "../service/config.ts";
import { homeAt, openHome } from "../service/home.ts";
import { livingHolder } from "../service/process-lock.ts";
import { Database } from "../store/database.ts";
import { EmbeddedPostgres } from "../store/embedded/embedded-postgres.ts";

export interface OpenedDatabase {
  readonly database: Database;
  /** Closes connections, and stops the embedded server if this call started it and nobody else uses it. */
  stop(): Promise<void>;
}

/** DATABASE_URL if given, else the embedded PostgreSQL of the home: adopted when it runs, started when it does not. */
export async function openDatabase(config: Config, applicationName = "tradewind"): Promise<OpenedDatabase> {
  const options = { max: config.databaseConnections, applicationName };
  if (config.databaseUrl !== undefined) {
    const database = Database.connect(config.databaseUrl, options);
    return { database, stop: () => database.close() };
  }
  const home = await openHome(config.home);
  const server = await EmbeddedPostgres.start({
    dataDir: home.postgres,
    logFile: join(home.logs, "postgres.log"),
  });
  const database = Database.connect(server.url, options);
  return {
    database,
    stop: async () => {
      await database.close();
      // A standalone on this home owns its server: whoever only borrowed it leaves it running.
      if (!(await livingHolder(homeAt(config.home).lock))) await server.stop("fast");
    },
  };
}

/** The state of the database server, as far as its role may see it. */
import type { Connection } from "../database/database.ts";
import { adhoc, statement } from "../database/statement.ts";

export interface DatabaseState {
  /** Milliseconds until the database has answered an empty query. */
  readonly latencyMs: number;
  readonly version: string;
  readonly size_bytes: number;
  /** Of all databases of the server. */
  readonly connections: number;
  readonly max_connections: number;
  /** In this database; null: none is open. */
  readonly oldest_transaction: OldestTransaction | null;
}

interface OldestTransaction {
  readonly pid: number;
  readonly user: string;
  readonly application: string | null;
  readonly state: string;
  readonly age_seconds: number;
}

/** Without pg_read_all_stats, our role does not see when transactions of other roles began. */
const STATE = statement(
  "ui-database-state",
  `SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS size_bytes,
     (SELECT sum(numbackends)::int FROM pg_stat_database) AS connections,
     current_setting('max_connections')::int AS max_connections,
     (SELECT json_build_object('pid', a.pid, 'user', a.usename, 'application', nullif(a.application_name, ''), 'state', a.state,
        'age_seconds', extract(epoch FROM clock_timestamp() - a.xact_start)::float8)
      FROM pg_stat_activity a
      WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.xact_start IS NOT NULL
        AND a.pid <> pg_backend_pid()
      ORDER BY a.xact_start LIMIT 1) AS oldest_transaction`,
);

export async function databaseState(connection: Connection): Promise<DatabaseState> {
  const latencyMs = await databaseLatency(connection);
  return { latencyMs, ...(await connection.one<Omit<DatabaseState, "latencyMs">>(STATE))! };
}

/** Milliseconds until the database has answered. */
export async function databaseLatency(connection: Connection): Promise<number> {
  const start = performance.now();
  await connection.rows(adhoc("SELECT 1 AS answer"));
  return performance.now() - start;
}

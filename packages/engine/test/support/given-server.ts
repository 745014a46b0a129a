/**
 * The PostgreSQL server that `npm run test:faults` uses instead of its own servers: the one in DATABASE_URL. Its user must
 * be allowed to create databases and to terminate the sessions in them. Only databases named `tw_test_…` and `tw_template_…`
 * are created, and dropped again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** Set by vitest.faults.config.ts. */
const GIVEN_SERVER = "TRADEWIND_TEST_SERVER";

export function givenServer(): string | undefined {
  return process.env[GIVEN_SERVER] || undefined;
}

export function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

export async function onServer<R extends pg.QueryResultRow>(
  serverUrl: string,
  sql: string,
  values: unknown[] = [],
) {
  const client = new pg.Client({ connectionString: serverUrl });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query<R>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** Terminates every session of a database, and each new one soon after it begins, until stopped. */
export function endSessions(serverUrl: string, database: string): () => Promise<void> {
  let isOver = false;
  const ending = (async () => {
    while (!isOver) {
      await onServer(
        serverUrl,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()",
        [database],
      );
      await sleep(10);
    }
  })();
  return () => {
    isOver = true;
    return ending;
  };
}

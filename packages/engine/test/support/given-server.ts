/**
 * The PostgreSQL that `npm run test:faults` runs against instead of servers of its own: the one DATABASE_URL names. Its user
 * must be allowed to create databases and to end the sessions in them. Only databases named `tw_test_…` and
 * `tw_template_…` are created, and dropped again.
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

/** Ends every session of a database, and each new one soon after it began, until it is called off. */
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

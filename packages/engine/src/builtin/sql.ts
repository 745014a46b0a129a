/**
 * Waits for a row in a user's PostgreSQL database. The query runs in a read-only transaction, through a cursor that
 * fetches one row: a query with a million rows does not transfer them.
 */
import type { SqlArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type pg from "pg";
import { json, list, members, text, whole } from "./argument-readers.ts";
import { openConnection } from "./connection.ts";
import { polledKind } from "./poll-loop.ts";
import { AS_JSON, holdPool, NUMERIC, SESSIONS } from "./sql-pool.ts";
import { refused } from "./trigger-error.ts";
import type { Sight } from "./watches.ts";

const STATEMENT_TIMEOUT_MS = 20_000;

export const sqlKind = polledKind("tradewind.sql", {
  args: members({
    connection: text,
    query: text,
    parameters: list(json),
    intervalMs: whole(1),
  }),
  intervalMs: ({ intervalMs }) => intervalMs,
  again: "changed",
  open: async (args, host, hide) => {
    const pool = holdPool(await openConnection(host, args.connection, hide));
    return {
      place: `sql ${args.connection}`,
      limit: SESSIONS,
      poll: (signal) => queryOnce(pool.client, args, signal),
      close: pool.release,
    };
  },
});

async function queryOnce(pool: pg.Pool, args: SqlArgs, signal: AbortSignal): Promise<Sight> {
  try {
    const client = await pool.connect();
    // The query of an ended poll must not occupy a session: the session is closed.
    let isOver = false;
    const release = (broken: boolean) => {
      if (!isOver) client.release(broken);
      isOver = true;
    };
    const stop = () => release(true);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    signal.throwIfAborted();
    try {
      const sight = await firstRow(client, args);
      release(false);
      return sight;
    } catch (error) {
      release(true);
      throw error;
    } finally {
      signal.removeEventListener("abort", stop);
    }
  } catch (error) {
    throw isFinal(error) ? refused((error as Error).message) : error;
  }
}

async function firstRow(client: pg.PoolClient, { query, parameters }: SqlArgs): Promise<Sight> {
  await client.query(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
  const declaration = {
    text: `DECLARE tradewind_look NO SCROLL CURSOR FOR ${query}`,
    values: parameters.map(parameter),
    // A single statement: a second one after a semicolon could leave the transaction.
    queryMode: "extended",
  };
  await client.query(declaration);
  const { rows, fields } = await client.query<unknown[]>({
    text: "FETCH 1 FROM tradewind_look",
    rowMode: "array",
    types: AS_JSON,
  });
  await client.query("ROLLBACK");
  const row = rows[0];
  if (row === undefined) return { note: "the query has no row yet" };
  if (!isTruthy(row[0], fields[0]?.dataTypeID))
    return { note: "the first column of the first row is not true yet" };
  return { event: { row: Object.fromEntries(fields.map(({ name }, at) => [name, row[at] as Json])) } };
}

/** Lists and objects as JSON text, which PostgreSQL reads as json or jsonb. */
function parameter(value: Json): unknown {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

function isTruthy(value: unknown, type: number | undefined): boolean {
  if (type === NUMERIC && Number(value) === 0) return false;
  return (
    value !== undefined && value !== null && value !== false && value !== 0 && value !== "" && value !== "0"
  );
}

/**
 * Permanent errors of the server: a wrong login (28), no such database (3D), an error in the statement or a missing
 * privilege (42), an invalid value (22), a write (25006), an unsupported feature (0A).
 */
function isFinal(error: unknown): boolean {
  const { code, severity } = (error ?? {}) as { code?: unknown; severity?: unknown };
  return typeof code === "string" && severity !== undefined && /^(?:28|3D|42|22|0A|25006)/.test(code);
}

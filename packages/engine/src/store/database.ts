import pg from "pg";
import { EngineError } from "../service/errors.ts";
import { encoded } from "./array-literal.ts";
import { runBatch } from "./batch.ts";
import { breaksConnection, CommitUnknownError, sqlState } from "./connection-error.ts";
import { type Listening, listen } from "./listen.ts";
import { type Call, type Statement, statement } from "./statement.ts";
import { wireTypes } from "./wire-types.ts";

export { CommitUnknownError, isTransient, sqlState } from "./connection-error.ts";
export type { Listening } from "./listen.ts";
export { adhoc, type Call, call, type Statement, statement } from "./statement.ts";

/** One connection, or the pool: each `rows` of the pool is a transaction of its own. */
export interface Connection {
  rows<R>(statement: Statement, values?: readonly unknown[]): Promise<R[]>;
  one<R>(statement: Statement, values?: readonly unknown[]): Promise<R | undefined>;
}

export interface Transaction extends Connection {
  /** Several statements as plain text, without values: for migrations. */
  script(sql: string): Promise<void>;
}

export interface DatabaseOptions {
  /** Connections for single statements and transactions. */
  readonly max?: number;
  /** Connections for `pipeline`, apart from the others so that a full pool never delays the scheduler. */
  readonly maxPipelines?: number;
  readonly applicationName?: string;
}

/**
 * The one way to PostgreSQL. Connects when first used, and again by itself after the server was away: a call made
 * meanwhile rejects with an error for which `isTransient` is true. Nothing is ever repeated on the caller's behalf.
 * A single statement outside a transaction whose connection breaks may or may not have been applied.
 */
export class Database implements Connection {
  readonly url: string;
  readonly #config: pg.ClientConfig;
  readonly #pool: pg.Pool;
  readonly #pipelines: pg.Pool;
  readonly #listening = new Set<Listening>();

  static connect(url: string, options: DatabaseOptions = {}): Database {
    return new Database(url, options);
  }

  private constructor(url: string, options: DatabaseOptions) {
    this.url = url;
    this.#config = clientConfig(url, options.applicationName ?? "tradewind");
    this.#pool = openPool(this.#config, options.max ?? 10);
    this.#pipelines = openPool(
      { ...this.#config, options: POINT_LOOKUPS, lock_timeout: BATCH_LOCK_MS },
      options.maxPipelines ?? 4,
    );
  }

  async rows<R>(statement: Statement, values: readonly unknown[] = []): Promise<R[]> {
    return this.#withClient(this.#pool, (client) => query<R>(client, statement, values));
  }

  async one<R>(statement: Statement, values: readonly unknown[] = []): Promise<R | undefined> {
    return (await this.rows<R>(statement, values))[0];
  }

  /** Runs `work` between BEGIN and COMMIT on one connection; ROLLBACK when it throws. Await every call inside `work`. */
  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#withClient(this.#pool, async (client) => {
      await query(client, BEGIN, []);
      let result: T;
      try {
        result = await work(transactionOn(client));
      } catch (error) {
        // The original error is the one to report; a connection that cannot roll back is thrown away with its transaction.
        await query(client, ROLLBACK, []).catch(() => {});
        throw error;
      }
      await commit(client);
      return result;
    });
  }

  /** All calls as one transaction in one round trip: all stored, or rejected with the first error and nothing stored. */
  async pipeline(calls: readonly Call[]): Promise<unknown[][]> {
    if (calls.length === 0) return [];
    return this.#withClient(this.#pipelines, (client) => runBatch(client, calls));
  }

  /** Calls `onNotify` for each notification, and with "" whenever some may have been missed (after each reconnect). */
  async listen(channel: string, onNotify: (payload: string) => void): Promise<Listening> {
    const listening = await listen(this.#config, channel, onNotify);
    this.#listening.add(listening);
    return {
      get isUp() {
        return listening.isUp;
      },
      close: async () => {
        this.#listening.delete(listening);
        await listening.close();
      },
    };
  }

  /** Waits for what is running, then closes every connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#listening].map((each) => each.close()));
    this.#listening.clear();
    await Promise.all([this.#pool, this.#pipelines].map((pool) => (pool.ending ? undefined : pool.end())));
  }

  async #withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      broken = unfit(error) || client.getTransactionStatus() !== "I";
      throw error;
    } finally {
      client.release(broken);
    }
  }
}

/**
 * Batches find their rows by key, always. A plan made while a table was small or not yet analysed would scan it, and,
 * being prepared, would go on scanning it when it has grown: so the scanning plans are not on offer.
 */
const POINT_LOOKUPS =
  "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan";

/** A batch that waits longer for a lock is refused and tried again: the scheduler's heartbeat must not wait with it. */
const BATCH_LOCK_MS = 1_000;

const BEGIN = statement("tx_begin", "BEGIN");
const COMMIT = statement("tx_commit", "COMMIT");
const ROLLBACK = statement("tx_rollback", "ROLLBACK");

/** How every connection is made. */
export function clientConfig(url: string, applicationName: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    statement_timeout: 60_000,
    lock_timeout: 15_000,
    idle_in_transaction_session_timeout: 30_000,
    // Longer than the server's own limit: ends what a silently lost network would leave waiting for ever.
    query_timeout: 75_000,
    connectionTimeoutMillis: 15_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: wireTypes,
  };
}

function openPool(config: pg.ClientConfig, max: number): pg.Pool {
  const pool = new pg.Pool({ ...config, max, idleTimeoutMillis: 300_000 });
  // An idle connection that the server ends, and one that breaks between two statements of a transaction, are both
  // reported as an event; without a listener Node would end the process. The next statement gets the error.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

function transactionOn(client: pg.PoolClient): Transaction {
  return {
    rows: (statement, values = []) => query(client, statement, values),
    one: async <R>(statement: Statement, values: readonly unknown[] = []) =>
      (await query<R>(client, statement, values))[0],
    script: async (sql) => {
      await client.query({ text: sql, query_timeout: SCRIPT_TIMEOUT_MS } as pg.QueryConfig);
    },
  };
}

const SCRIPT_TIMEOUT_MS = 24 * 3_600_000;

async function query<R>(
  client: pg.ClientBase,
  { name, text }: Statement,
  values: readonly unknown[],
): Promise<R[]> {
  const encodedValues = values.map(encoded);
  const config = name === "" ? { text, values: encodedValues } : { name, text, values: encodedValues };
  return (await client.query(config)).rows as R[];
}

async function commit(client: pg.ClientBase): Promise<void> {
  let command: string;
  try {
    command = (await client.query({ ...COMMIT, values: [] })).command;
  } catch (error) {
    throw breaksConnection(error) ? new CommitUnknownError(error) : error;
  }
  // The server answers COMMIT with ROLLBACK when a statement had failed and the caller swallowed its error.
  if (command !== "COMMIT") {
    throw new EngineError(
      "TRANSACTION_ABORTED",
      "A statement in this transaction failed and its error was not passed on: nothing was stored. Let the error leave the transaction.",
    );
  }
}

/** May the connection go back to the pool after this error? */
function unfit(error: unknown): boolean {
  if (error instanceof CommitUnknownError) return true;
  const state = sqlState(error);
  // 0A000: a prepared plan's result type changed. 26000: the server lost the prepared statement. A fresh connection heals both.
  if (state !== null) return breaksConnection(error) || state === "0A000" || state === "26000";
  return error instanceof Error && /^(Query read timeout|Connection terminated|Client )/.test(error.message);
}

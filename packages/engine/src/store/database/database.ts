import pg from "pg";
import { EngineError } from "../../service/errors.ts";
import { encoded } from "./array-literal.ts";
import { runBatch } from "./batch.ts";
import { breaksConnection, CommitUnknownError, sqlState } from "./connection-error.ts";
import { DeadConnections, destroy, openFresh } from "./dead-connections.ts";
import { type Listening, listen } from "./listen.ts";
import { type Call, type Statement, statement } from "./statement.ts";
import { wireTypes } from "./wire-types.ts";

export { CommitUnknownError, isContended, isTransient, sqlState } from "./connection-error.ts";
export type { Listening } from "./listen.ts";
export { adhoc, type Call, call, type Statement, statement } from "./statement.ts";

/** One connection, or the pool: each `rows` of the pool is a separate transaction. */
export interface Connection {
  rows<R>(statement: Statement, values?: readonly unknown[]): Promise<R[]>;
  one<R>(statement: Statement, values?: readonly unknown[]): Promise<R | undefined>;
}

export interface Transaction extends Connection {
  /** Several statements as plain text, without parameters: for migrations. */
  script(sql: string): Promise<void>;
}

export interface DatabaseOptions {
  /** Connections for single statements and transactions. */
  readonly max?: number;
  /** Connections for `pipeline`, separate from the others so that a full pool never delays the scheduler. */
  readonly maxPipelines?: number;
  readonly applicationName?: string;
}

/**
 * Access to PostgreSQL. Connects on first use and reconnects after an outage; calls during the outage reject with an
 * error for which `isTransient` is true. No call is ever repeated on the caller's behalf. If the connection breaks, a
 * single statement outside a transaction may or may not have been applied.
 */
export class Database implements Connection {
  readonly url: string;
  readonly #config: pg.ClientConfig;
  readonly #pool: pg.Pool;
  readonly #pipelines: pg.Pool;
  readonly #listening = new Set<Listening>();
  readonly #dead: DeadConnections;
  readonly #bornAt = new WeakMap<pg.ClientBase, number>();
  readonly #inUse = new Set<pg.ClientBase>();
  /** The reject functions of calls that wait for a connection. */
  readonly #acquiring = new Set<(error: Error) => void>();
  readonly #siblings = new Set<Database>();
  #givingUp: NodeJS.Timeout | null = null;
  #isGivenUp = false;
  #onClosed: () => void = () => {};
  /** Connections opened before this time are not used again. */
  #soundSince = 0;

  static connect(url: string, options: DatabaseOptions = {}): Database {
    return new Database(url, options);
  }

  private constructor(url: string, options: DatabaseOptions) {
    this.url = url;
    this.#config = clientConfig(url, options.applicationName ?? "tradewind");
    this.#dead = new DeadConnections(this.#config, () => this.#onDead());
    this.#pool = openPool(this.#config, options.max ?? 10);
    const batches = { options: `${this.#config.options} ${POINT_LOOKUPS}`, lock_timeout: BATCH_LOCK_MS };
    this.#pipelines = openPool({ ...this.#config, ...batches }, options.maxPipelines ?? 4);
    for (const pool of [this.#pool, this.#pipelines])
      pool.on("connect", (client) => this.#bornAt.set(client, performance.now()));
  }

  async rows<R>(statement: Statement, values: readonly unknown[] = []): Promise<R[]> {
    return this.#withClient(this.#pool, (client) => this.#query<R>(client, statement, values));
  }

  async one<R>(statement: Statement, values: readonly unknown[] = []): Promise<R | undefined> {
    return (await this.rows<R>(statement, values))[0];
  }

  /**
   * As `one`, for calls that must not wait for a dead connection: without a reply after a second the statement is also
   * sent over a new connection, and the first reply counts. The statement may run twice.
   */
  async oneSoon<R>(statement: Statement, values: readonly unknown[] = []): Promise<R | undefined> {
    const answer = this.one<R>(statement, values);
    const timeout = Promise.withResolvers<true>();
    const timer = setTimeout(timeout.resolve, SOON_MS, true);
    const isAnswered = answer.then(
      () => false,
      () => false,
    );
    const isSilent = await Promise.race([isAnswered, timeout.promise]).finally(() => clearTimeout(timer));
    if (!isSilent) return answer;
    return Promise.any([answer, this.#oneFresh<R>(statement, values)]).catch((error: AggregateError) => {
      throw error.errors[0];
    });
  }

  /** Runs `work` between BEGIN and COMMIT on one connection; ROLLBACK when it throws. Await every call inside `work`. */
  async transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#withClient(this.#pool, async (client) => {
      await this.#query(client, BEGIN, []);
      let result: T;
      try {
        result = await work(this.#transactionOn(client));
      } catch (error) {
        // Report the original error; a connection that cannot roll back is closed with its transaction.
        await this.#query(client, ROLLBACK, []).catch(() => {});
        throw error;
      }
      await this.#dead.answer(client, commit(client));
      return result;
    });
  }

  /** All calls as one transaction in one round trip: all stored, or rejected with the first error and none stored. */
  async pipeline(calls: readonly Call[]): Promise<unknown[][]> {
    if (calls.length === 0) return [];
    return this.#withClient(this.#pipelines, (client) => this.#dead.answer(client, runBatch(client, calls)));
  }

  /** Calls `onNotify` for each notification, and with "" if some may have been missed (after each reconnect). */
  async listen(channel: string, onNotify: (payload: string) => void): Promise<Listening> {
    const listening = await listen(this.#config, channel, onNotify);
    this.#listening.add(listening);
    return {
      get isUp() {
        return listening.isUp;
      },
      check: () => listening.check(),
      close: async () => {
        this.#listening.delete(listening);
        await listening.close();
      },
    };
  }

  /** Separate connections to the same database; `giveUpIn` applies to them, too. */
  sibling(options: DatabaseOptions): Database {
    const sibling = new Database(this.url, options);
    sibling.#onClosed = () => this.#siblings.delete(sibling);
    this.#siblings.add(sibling);
    return sibling;
  }

  /** For a process that is about to exit: rejects all calls after this time, including calls in progress. */
  rejectCallsIn(ms: number): void {
    for (const sibling of this.#siblings) sibling.rejectCallsIn(ms);
    this.#givingUp ??= setTimeout(() => this.#rejectCalls(), ms).unref();
  }

  /** Waits up to `withinMs` for running calls, then closes every connection. */
  async close(withinMs = CLOSE_MS): Promise<void> {
    this.rejectCallsIn(withinMs);
    await Promise.all([...this.#listening].map((each) => each.close()));
    this.#listening.clear();
    const ends = [this.#pool, this.#pipelines].map((pool) => (pool.ending ? undefined : pool.end()));
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, this.#isGivenUp ? 0 : withinMs + 500);
    await Promise.race([Promise.all(ends), late.promise]);
    clearTimeout(timer);
    if (this.#givingUp !== null) clearTimeout(this.#givingUp);
    this.#onClosed();
  }

  async #withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#sound(pool);
    let broken = false;
    this.#inUse.add(client);
    try {
      return await work(client);
    } catch (error) {
      broken = unfit(error) || client.getTransactionStatus() !== "I";
      throw error;
    } finally {
      this.#inUse.delete(client);
      client.release(broken);
    }
  }

  async #sound(pool: pg.Pool): Promise<pg.PoolClient> {
    for (;;) {
      const client = await this.#acquire(pool);
      if ((this.#bornAt.get(client) ?? 0) >= this.#soundSince) return client;
      destroy(client);
      client.release(true);
    }
  }

  #acquire(pool: pg.Pool): Promise<pg.PoolClient> {
    return new Promise((resolve, reject) => {
      if (this.#isGivenUp) return reject(givenUp());
      this.#acquiring.add(reject);
      pool.connect().then(
        (client) => {
          if (this.#acquiring.delete(reject)) resolve(client);
          else client.release(true);
        },
        (error) => {
          this.#acquiring.delete(reject);
          reject(error);
        },
      );
    });
  }

  #rejectCalls(): void {
    this.#isGivenUp = true;
    for (const reject of this.#acquiring) reject(givenUp());
    this.#acquiring.clear();
    this.#inUse.forEach(destroy);
  }

  #onDead(): void {
    this.#soundSince = performance.now();
    for (const listening of this.#listening) listening.check();
  }

  async #query<R>(client: pg.ClientBase, statement: Statement, values: readonly unknown[]): Promise<R[]> {
    return this.#dead.answer(client, query<R>(client, statement, values));
  }

  async #oneFresh<R>(statement: Statement, values: readonly unknown[]): Promise<R | undefined> {
    const client = await openFresh(this.#config);
    try {
      return (await query<R>(client, statement, values))[0];
    } finally {
      client.end().catch(() => {});
    }
  }

  #transactionOn(client: pg.PoolClient): Transaction {
    return {
      rows: (statement, values = []) => this.#query(client, statement, values),
      one: async <R>(statement: Statement, values: readonly unknown[] = []) =>
        (await this.#query<R>(client, statement, values))[0],
      script: async (sql) => {
        const script = { text: sql, query_timeout: SCRIPT_TIMEOUT_MS } as pg.QueryConfig;
        await this.#dead.answer(client, client.query(script));
      },
    };
  }
}

/**
 * A frequent statement that finds its rows by key. Planning it at each execution, as PostgreSQL does while the arrays differ
 * in length, can cost more than its execution; so it runs as a pipeline, with the plan of one.
 */
export async function pointRows<R>(
  db: Connection,
  statement: Statement,
  values: readonly unknown[],
): Promise<R[]> {
  if (!(db instanceof Database)) return db.rows(statement, values);
  const [rows] = await db.pipeline([{ statement, values }]);
  return rows as R[];
}

/**
 * Batches always find their rows by key. A plan made while a table was small or not analysed would scan it, and would
 * keep scanning it after it has grown, because it is prepared: so scans are disabled.
 */
const POINT_LOOKUPS =
  "-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan";

/** The server also drops a dead client, which would otherwise keep the locks of its transaction. */
const TCP_LIMITS =
  "-c tcp_user_timeout=10000 -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

const SOON_MS = 1_000;
/** For calls that still run after everything else has stopped. */
const CLOSE_MS = 3_000;

/** A batch that waits longer for a lock is rejected and retried: it must not delay the scheduler's heartbeat. */
const BATCH_LOCK_MS = 1_000;

const BEGIN = statement("tx_begin", "BEGIN");
const COMMIT = statement("tx_commit", "COMMIT");
const ROLLBACK = statement("tx_rollback", "ROLLBACK");

/** The configuration of every connection. */
export function clientConfig(url: string, applicationName: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: applicationName,
    options: TCP_LIMITS,
    statement_timeout: 60_000,
    lock_timeout: 15_000,
    idle_in_transaction_session_timeout: 30_000,
    // Longer than the server's limit: the fallback where DeadConnections cannot detect a dead connection.
    query_timeout: 75_000,
    connectionTimeoutMillis: 15_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: wireTypes,
  };
}

function openPool(config: pg.ClientConfig, max: number): pg.Pool {
  const pool = new pg.Pool({ ...config, max, idleTimeoutMillis: 300_000 });
  // If the server closes an idle connection, or a connection breaks between two statements of a transaction, the driver
  // emits an event; without a listener Node would exit. The next statement gets the error.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

/** The driver's wording for a closed connection: callers treat it as an outage. */
function givenUp(): Error {
  return new Error("Connection terminated: the process is stopping");
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
  // The server answers COMMIT with ROLLBACK if a statement failed and the caller swallowed its error.
  if (command !== "COMMIT") {
    throw new EngineError(
      "TRANSACTION_ABORTED",
      "A statement in this transaction failed and its error was swallowed: nothing was stored. Let the error leave the transaction.",
    );
  }
}

/** True if the connection must not return to the pool after this error. */
function unfit(error: unknown): boolean {
  if (error instanceof CommitUnknownError) return true;
  const state = sqlState(error);
  // 0A000: the result type of a prepared plan changed. 26000: the server lost the statement. Reconnecting fixes both.
  if (state !== null) return breaksConnection(error) || state === "0A000" || state === "26000";
  return error instanceof Error && /^(Query read timeout|Connection terminated|Client )/.test(error.message);
}

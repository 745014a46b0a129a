/**
 * Clients of Redis. They do not reconnect on their own: a caller connects a client that is down, gets the real reason if
 * that fails, and retries with the trigger's own backoff.
 */
import { Redis } from "ioredis";
import { untilAborted } from "./abort.ts";
import type { OpenConnection } from "./connection.ts";
import { SharedClients } from "./shared-clients.ts";
import { refused } from "./trigger-error.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** For commands that return at once; one per connection, its commands share a socket. */
export const redisClients = new SharedClients<RedisClient>((client) => client.close());

export class RedisClient {
  readonly #redis: Redis;
  #connecting: Promise<void> | null = null;
  #lastError: Error | null = null;

  constructor(connection: OpenConnection) {
    const { port, login, password, schema, type } = connection.facts;
    if (!/^rediss?$/.test(type)) throw connection.unusable(`its type is "${type}", but must be redis`);
    const db = Number(schema || connection.option("db") || 0);
    if (!Number.isInteger(db) || db < 0) throw connection.unusable("its schema has to be a database number");
    const isEncrypted = type === "rediss" || connection.option("ssl") === "true";
    this.#redis = new Redis({
      host: connection.requiredHost(),
      port: port ?? 6379,
      username: login || undefined,
      password: password || undefined,
      db,
      tls: isEncrypted ? {} : undefined,
      protocol: 2,
      connectionName: "tradewind-trigger",
      connectTimeout: CONNECT_TIMEOUT_MS,
      keepAlive: 30_000,
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      retryStrategy: null,
    });
    this.#redis.on("error", (error: Error) => {
      this.#lastError = error;
    });
  }

  /** Sends a command, and connects first if there is no connection. */
  async call(command: string, args: readonly (string | number)[], signal: AbortSignal): Promise<unknown> {
    await untilAborted(this.#connected(), signal);
    try {
      return await untilAborted(this.#redis.call(command, args.map(String)), signal);
    } catch (error) {
      throw this.#explained(error);
    }
  }

  close(): void {
    this.#redis.disconnect();
  }

  #connected(): Promise<void> {
    if (this.#redis.status === "ready") return Promise.resolve();
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #connect(): Promise<void> {
    this.#lastError = null;
    try {
      await this.#redis.connect();
      // The library does not report a missing database as an error: it would use another one.
      if (this.#lastError !== null) throw this.#lastError;
    } catch (error) {
      this.#redis.disconnect();
      throw this.#explained(this.#lastError ?? error);
    }
  }

  /** The reason of a closed connection is reported apart from its pending commands. */
  #explained(error: unknown): unknown {
    const message = (error as Error).message;
    if (
      /^(?:WRONGPASS|NOAUTH|NOPERM|ERR (?:AUTH|DB index|invalid DB|invalid password|unknown command))/.test(
        message,
      )
    ) {
      return refused(`Redis: ${message}`);
    }
    if (message === "Connection is closed." && this.#lastError !== null) return this.#lastError;
    return error;
  }
}

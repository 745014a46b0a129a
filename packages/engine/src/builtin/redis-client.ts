/**
 * Clients of Redis. They do not reconnect by themselves: whoever needs one that is down connects it, learns the real
 * reason when that fails, and has the trigger's own patience to try again.
 */
import { Redis } from "ioredis";
import { untilAborted } from "./abort.ts";
import type { OpenConnection } from "./connection.ts";
import { SharedClients } from "./shared-clients.ts";
import { refused } from "./trigger-error.ts";

const CONNECT_TIMEOUT_MS = 10_000;

/** For commands that answer at once; one per connection, its commands share a socket. */
export const redisClients = new SharedClients<RedisClient>((client) => client.close());

export class RedisClient {
  readonly #redis: Redis;
  #connecting: Promise<void> | null = null;
  #lastError: Error | null = null;

  constructor(connection: OpenConnection) {
    const { port, login, password, schema, type } = connection.facts;
    if (!/^rediss?$/.test(type)) throw connection.unusable(`its type is "${type}", and redis is needed`);
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

  /** Sends a command as it is, over a connection that is made when there is none. */
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
      // A database that does not exist is no failure to the library: it would look into another one.
      if (this.#lastError !== null) throw this.#lastError;
    } catch (error) {
      this.#redis.disconnect();
      throw this.#explained(this.#lastError ?? error);
    }
  }

  /** The reason why a connection closed comes apart from what was under way on it. */
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

/**
 * The queues in Redis: one sorted set per name, of ids of assignments. The smallest score is received first, and among equal
 * scores the smallest id: ids of attempts begin with the time.
 */
import { Redis, type RedisOptions } from "ioredis";

/** Installations that share a Redis use different databases of it. */
const PREFIX = "tradewind";

/** An idle receiver asks again after this time. */
export const WAIT_S = 5;
/** Time without an answer after which a connection is given up. */
const SILENCE_MS = 2_000 * WAIT_S;

export function queueKey(queue: string): string {
  return `${PREFIX}:${queue}`;
}

/** For processes that send: a call fails after one reconnect, and after this time. */
export function senderConnection(url: string, timeoutMs: number): Redis {
  return open(url, { maxRetriesPerRequest: 1, commandTimeout: timeoutMs });
}

/** For processes that receive: a call waits until Redis is back. */
export function receiverConnection(url: string): Redis {
  return open(url, { maxRetriesPerRequest: null });
}

function open(url: string, options: RedisOptions): Redis {
  const retryStrategy = (times: number) => Math.min(50 * times, 1_000);
  return new Redis(url, { ...options, protocol: 2, retryStrategy, socketTimeout: SILENCE_MS });
}

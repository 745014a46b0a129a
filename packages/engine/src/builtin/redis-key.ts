/** Waits for a key in Redis, or for a value of it. */
import { anyText, members, orNull, text, whole } from "./argument-readers.ts";
import { openConnection } from "./connection.ts";
import { polledKind } from "./poll-loop.ts";
import { RedisClient, redisClients } from "./redis-client.ts";
import type { Sight } from "./watches.ts";

/** They share a socket and cost the server little. */
const LOOKS_PER_SERVER = 64;

export const redisKeyKind = polledKind("tradewind.rediskey", {
  args: members({
    connection: text,
    key: text,
    equals: orNull(anyText),
    intervalMs: whole(1),
  }),
  intervalMs: ({ intervalMs }) => intervalMs,
  again: "changed",
  open: async (args, host, hide) => {
    const connection = await openConnection(host, args.connection, hide);
    const redis = redisClients.hold(connection.fingerprint, () => new RedisClient(connection));
    return {
      place: `redis ${args.connection}`,
      limit: LOOKS_PER_SERVER,
      poll: async (signal) => sightOf(args.key, args.equals, await read(redis.client, args.key, signal)),
      close: redis.release,
    };
  },
});

function sightOf(key: string, equals: string | null, found: Found): Sight {
  if (!found.exists) return { note: `the key ${key} is not there yet` };
  if (equals !== null && found.value !== equals) return { note: `the key ${key} holds something else` };
  return { event: { key, value: found.value } };
}

interface Found {
  readonly exists: boolean;
  readonly value: string | null;
}

async function read(redis: RedisClient, key: string, signal: AbortSignal): Promise<Found> {
  try {
    const value = (await redis.call("GET", [key], signal)) as string | null;
    return { exists: value !== null, value };
  } catch (error) {
    // It exists and is a list, a hash, a stream.
    if (/^WRONGTYPE/.test((error as Error).message)) return { exists: true, value: null };
    throw error;
  }
}

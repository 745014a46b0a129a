/**
 * Every entry of a Redis stream is an event. With a group an entry is acknowledged when its event is stored, and
 * unacknowledged entries are read again: after a failure, by the next start of the trigger, on any machine. All starts of
 * a trigger use the same consumer name, so that each finds the entries of the others.
 *
 * If the process dies between the store and the acknowledgement, the entry comes again with the same key (its id). Without
 * a group nothing is acknowledged: a start begins after the last event of the earlier one if known, else at `from` again.
 */
import type { RedisStreamArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerHost } from "@tradewind/sdk/program";
import { Pause, untilAborted, withDeadline } from "./abort.ts";
import { like, members, orNull, text } from "./argument-readers.ts";
import { type BuiltinHost, builtinKind, type Fired } from "./builtin-kind.ts";
import { openConnection } from "./connection.ts";
import { PollBackoff } from "./poll-backoff.ts";
import { RedisClient } from "./redis-client.ts";

/** How long the server holds a read that finds nothing. */
const BLOCK_MS = 5_000;
const ANSWER_TIMEOUT_MS = 15_000;
const RETRY_MS = 1_000;
const PER_READ = 100;
const CONSUMER = "tradewind";

export const redisStreamKind = builtinKind("tradewind.redisstream", {
  args: members({
    connection: text,
    stream: text,
    group: orNull(text),
    from: like(/^(?:\$|\d+(?:-\d+)?)$/, '"$", "0" or the id of an entry'),
  }),
  run: follow,
  check: async (args, host) => {
    const patience = new PollBackoff(host, RETRY_MS);
    let reader: StreamReader | undefined;
    try {
      reader = await openReader(args, host, patience);
      for (const wait of [null, 0]) {
        const [entry] = await reader.read(wait, 1);
        if (entry === undefined) continue;
        // The calling task has the entry now; no acknowledgement follows.
        await reader.acknowledge(entry.id);
        return eventOf(entry);
      }
      return undefined;
    } catch (error) {
      throw patience.final(error);
    } finally {
      reader?.close();
    }
  },
});

async function* follow(args: RedisStreamArgs, host: BuiltinHost): AsyncGenerator<Fired, void, void> {
  const patience = new PollBackoff(host, RETRY_MS);
  const pause = new Pause();
  const before = args.group === null ? (host.lastEvent as Partial<Entry> | undefined)?.id : undefined;
  const position: Position = { last: before ?? null };
  let reader: StreamReader | undefined;
  /** Runs one step on an open reader; undefined: it failed, the pause has ended, and the reader is closed. */
  const attempt = async <T>(step: (reader: StreamReader) => Promise<T>): Promise<T | undefined> => {
    try {
      reader ??= await openReader(args, host, patience, position);
      const result = await step(reader);
      patience.succeeded();
      return result;
    } catch (error) {
      reader?.close();
      reader = undefined;
      if (host.abort.aborted) return undefined;
      await pause.for(patience.failed(error), host.abort);
      return undefined;
    }
  };
  try {
    while (!host.abort.aborted) {
      const entries = await attempt((open) => open.read(BLOCK_MS, PER_READ));
      for (const entry of entries ?? []) {
        if (host.abort.aborted) return;
        yield { payload: eventOf(entry), key: entry.id };
        // Resumed: it is stored. Reading on before the acknowledgement has succeeded would deliver it again.
        let isAcknowledged: boolean | undefined;
        while (!isAcknowledged && !host.abort.aborted) {
          isAcknowledged = await attempt(async (open) => {
            await open.acknowledge(entry.id);
            return true;
          });
        }
        position.last = entry.id;
      }
    }
  } finally {
    reader?.close();
  }
}

/** The last entry whose event is stored; null before the first. */
interface Position {
  last: string | null;
}

interface Entry {
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

function eventOf({ id, fields }: Entry): Json {
  return { id, fields };
}

async function openReader(
  args: RedisStreamArgs,
  host: TriggerHost,
  patience: PollBackoff,
  position: Position = { last: null },
): Promise<StreamReader> {
  const opening = openConnection(host, args.connection, (secret) => void patience.mask.add(secret));
  const connection = await untilAborted(opening, host.abort);
  // A separate socket: a blocking read delays all later commands.
  const reader = new StreamReader(new RedisClient(connection), args, host, position);
  try {
    await reader.begin();
    return reader;
  } catch (error) {
    reader.close();
    throw error;
  }
}

class StreamReader {
  readonly #redis: RedisClient;
  readonly #args: RedisStreamArgs;
  readonly #host: TriggerHost;
  readonly #position: Position;
  /** Up to where unacknowledged entries have been read again; null: all of them. */
  #pending: string | null = "0";
  /** Without a group: the last entry that was read. */
  #after: string;

  constructor(redis: RedisClient, args: RedisStreamArgs, host: TriggerHost, position: Position) {
    this.#redis = redis;
    this.#args = args;
    this.#host = host;
    this.#position = position;
    this.#after = position.last ?? args.from;
  }

  async begin(): Promise<void> {
    const { stream, group } = this.#args;
    if (group !== null) {
      // The start position if the group is new, or if the stream was deleted together with the group.
      await this.#call("XGROUP", ["CREATE", stream, group, this.#after, "MKSTREAM"]).catch((error: Error) => {
        if (!error.message.startsWith("BUSYGROUP")) throw error;
      });
    } else if (this.#after === "$") {
      // As an id: an entry that is added between two reads would be in neither.
      const newest = (await this.#call("XREVRANGE", [stream, "+", "-", "COUNT", 1])) as [string, string[]][];
      this.#after = newest[0]?.[0] ?? "0-0";
      this.#position.last = this.#after;
    }
  }

  /** Existing entries, else entries that arrive within `blockMs`; null: only unacknowledged entries. */
  async read(blockMs: number | null, count: number): Promise<Entry[]> {
    if (this.#args.group === null) {
      if (blockMs === null) return [];
      const entries = await this.#fetch("XREAD", [], blockMs, count, this.#after);
      this.#after = entries.at(-1)?.id ?? this.#after;
      return whole(entries);
    }
    const head = ["GROUP", this.#args.group, CONSUMER];
    while (this.#pending !== null) {
      const entries = await this.#fetch("XREADGROUP", head, 0, count, this.#pending);
      this.#pending = entries.at(-1)?.id ?? null;
      for (const { id } of entries.filter(({ fields }) => fields === null)) {
        this.#host.log("warn", `entry ${id} was deleted from the stream before its event was stored`);
        await this.acknowledge(id);
      }
      if (whole(entries).length > 0) return whole(entries);
    }
    return blockMs === null ? [] : whole(await this.#fetch("XREADGROUP", head, blockMs, count, ">"));
  }

  async acknowledge(id: string): Promise<void> {
    const { stream, group } = this.#args;
    if (group !== null) await this.#call("XACK", [stream, group, id]);
  }

  close(): void {
    this.#redis.close();
  }

  async #fetch(
    command: string,
    head: readonly string[],
    blockMs: number,
    count: number,
    after: string,
  ): Promise<RawEntry[]> {
    // BLOCK 0 would wait forever.
    const block = blockMs > 0 ? ["BLOCK", blockMs] : [];
    const args = [...head, "COUNT", count, ...block, "STREAMS", this.#args.stream, after];
    const answer = (await this.#call(command, args)) as [string, [string, string[] | null][]][] | null;
    this.#host.polled();
    return (answer?.[0]?.[1] ?? []).map(([id, fields]) => ({ id, fields }));
  }

  #call(command: string, args: readonly (string | number)[]): Promise<unknown> {
    return withDeadline(this.#host.abort, ANSWER_TIMEOUT_MS, (signal) =>
      this.#redis.call(command, args, signal),
    );
  }
}

interface RawEntry {
  readonly id: string;
  /** Null if the entry was deleted after it was first read. */
  readonly fields: readonly string[] | null;
}

function whole(entries: readonly RawEntry[]): Entry[] {
  return entries.flatMap(({ id, fields }) => (fields === null ? [] : [{ id, fields: pairs(fields) }]));
}

function pairs(flat: readonly string[]): Record<string, string> {
  const fields: [string, string][] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) fields.push([flat[at] as string, flat[at + 1] as string]);
  return Object.fromEntries(fields);
}

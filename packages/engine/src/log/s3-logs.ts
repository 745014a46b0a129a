/**
 * Logs in a bucket of S3 or a compatible store ([ADR 44]). A chunk extends the last object of its log while that is small:
 * the longer object is written, then the shorter one deleted. Else the chunk begins an object. So a log that grows slowly for
 * days has few objects, and a small log has one. No object is overwritten with other content, and none is deleted before
 * another one has its bytes: a request that arrives late, or a server that dies at any line, loses nothing that was stored.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { S3Place } from "../service/setting-values.ts";
import { WakeableSleep } from "../service/wakeable-sleep.ts";
import { ChunkedLog } from "./chunked-log.ts";
import { chunkRejected, type LogStore, type LogView, partsOf, type StoredLog } from "./log-store.ts";
import type { LogListener, LogSink } from "./log-writer.ts";
import { S3Bucket } from "./s3-bucket.ts";
import { listLogs, pieceName, S3Log } from "./s3-log.ts";

/** An object of this size is not extended. */
const TAIL_BYTES = 64 * 1024;
const MAX_TAILS = 500;
const CLOSE_MS = 2_000;

/** The last object of a log while it may be extended; empty at the end of a full one. */
interface Tail {
  readonly start: number;
  readonly bytes: Buffer;
}

export class S3Logs implements LogStore {
  readonly #bucket: S3Bucket;
  /** Of recent chunks, the oldest first. Another process may have extended the log: the offset of a chunk shows it. */
  readonly #tails = new Map<string, Tail>();
  /** The last writer of each log. */
  readonly #writers = new Map<string, ChunkedLog>();

  constructor(location: string, place: S3Place) {
    this.#bucket = new S3Bucket(location, place);
  }

  open(key: string, listener: LogListener): LogSink {
    // It may still be sending, although it is closed.
    const previous = this.#writers.get(key)?.done;
    const writer = new ChunkedLog(
      {
        begin: async () => {
          await previous;
          return await this.begin(key);
        },
        append: (offset, bytes) => this.append(key, offset, bytes),
      },
      listener,
    );
    this.#writers.set(key, writer);
    void writer.done.then(() => {
      if (this.#writers.get(key) !== writer) return;
      this.#writers.delete(key);
      this.#tails.delete(key);
    });
    return writer;
  }

  async begin(key: string): Promise<number> {
    const log = await this.#find(key);
    if (log.size === 0) return 0;
    const last = await log.read(log.size - 1, log.size);
    return last[0] === 0x0a ? log.size : await this.append(key, log.size, Buffer.from("\n"));
  }

  async append(key: string, offset: number, bytes: Buffer): Promise<number> {
    const known = this.#tails.get(key);
    if (known && endOf(known) === offset) return await this.#extend(key, known, bytes);
    const log = await this.#find(key);
    if (offset > log.size) throw chunkRejected(key, offset, log.size);
    const stored = await log.read(offset, Math.min(log.size, offset + bytes.length));
    if (!stored.equals(bytes.subarray(0, stored.length))) throw chunkRejected(key, offset, log.size);
    const rest = bytes.subarray(stored.length);
    return rest.length === 0 ? log.size : await this.#extend(key, await tailOf(log), rest);
  }

  view(folders: readonly string[]): LogView {
    return new S3View(this.#bucket, folders.filter((folder) => partsOf(folder) !== null).map(prefixOf));
  }

  async folders(folder: string): Promise<readonly string[]> {
    return await this.#bucket.folders(prefixOf(folder));
  }

  async lastWritten(folder: string): Promise<number> {
    let latest = 0;
    for await (const { modifiedAt } of this.#bucket.list(prefixOf(folder)))
      latest = Math.max(latest, modifiedAt);
    return latest;
  }

  async remove(folder: string): Promise<void> {
    const objects = await Array.fromAsync(this.#bucket.list(prefixOf(folder)));
    await this.#bucket.remove(objects.map(({ name }) => name));
  }

  async close(): Promise<void> {
    const writers = [...this.#writers.values()];
    await Promise.race([Promise.all(writers.map(({ done }) => done)), sleep(CLOSE_MS, null, { ref: false })]);
    for (const writer of writers) writer.abandon();
    this.#bucket.close();
  }

  async #find(key: string): Promise<S3Log> {
    if (partsOf(key) === null) throw new Error(`invalid path of a log: ${JSON.stringify(key)}`);
    const [log = new S3Log(this.#bucket, key, [])] = await Array.fromAsync(
      listLogs(this.#bucket, prefixOf(key)),
    );
    return log;
  }

  async #extend(key: string, tail: Tail, bytes: Buffer): Promise<number> {
    const longer = { start: tail.start, bytes: Buffer.concat([tail.bytes, bytes]) };
    const end = endOf(longer);
    await this.#bucket.put(nameOf(key, longer), longer.bytes);
    this.#tails.delete(key);
    this.#tails.set(key, longer.bytes.length < TAIL_BYTES ? longer : { start: end, bytes: NOTHING });
    const [oldest] = this.#tails.keys();
    if (this.#tails.size > MAX_TAILS && oldest !== undefined) this.#tails.delete(oldest);
    // Readers prefer the longer object; the shorter one is deleted with its run at the latest.
    if (tail.bytes.length > 0) await this.#bucket.remove([nameOf(key, tail)]).catch(() => {});
    return end;
  }
}

const NOTHING = Buffer.alloc(0);

async function tailOf(log: S3Log): Promise<Tail> {
  const { last = { start: 0, end: 0 } } = log;
  if (last.end - last.start >= TAIL_BYTES) return { start: last.end, bytes: NOTHING };
  return { start: last.start, bytes: await log.read(last.start, last.end) };
}

function endOf({ bytes, start }: Tail): number {
  return start + bytes.length;
}

function nameOf(key: string, tail: Tail): string {
  return pieceName(key, { start: tail.start, end: endOf(tail) });
}

/** Of the objects below a folder, or of a log. */
function prefixOf(folder: string): string {
  return folder === "" ? "" : `${folder}/`;
}

const POLL_MS = 1_000;
/** Listing takes at most a quarter of the time. */
const POLL_SHARE = 3;

/** A bucket reports no changes: followers list it again and again. */
class S3View implements LogView {
  readonly #bucket: S3Bucket;
  readonly #prefixes: readonly string[];
  readonly #sleep = new WakeableSleep();
  /** By performance.now(). */
  #nextAt = 0;
  #isWoken = false;

  constructor(bucket: S3Bucket, prefixes: readonly string[]) {
    this.#bucket = bucket;
    this.#prefixes = prefixes;
  }

  async *changed(): AsyncGenerator<StoredLog, void, undefined> {
    const began = performance.now();
    const lists = this.#prefixes.map((prefix) => Array.fromAsync(listLogs(this.#bucket, prefix)));
    const logs = (await Promise.all(lists)).flat();
    const now = performance.now();
    this.#nextAt = now + Math.max(POLL_MS, POLL_SHARE * (now - began));
    yield* logs;
  }

  async wait({ stop }: { readonly stop: AbortSignal }): Promise<void> {
    const ms = this.#nextAt - performance.now();
    if (ms > 0 && !this.#isWoken && !stop.aborted) await this.#sleep.sleep(ms, stop);
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#sleep.wake();
  }

  close(): void {}
}

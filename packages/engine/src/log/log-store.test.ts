/** What every log store does. Two stores on one place stand for processes of two machines. */
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { s3Server } from "../../test/support/s3-server.ts";
import { cleanLogs } from "./log-retention.ts";
import type { LogStore, StoredLog } from "./log-store.ts";
import type { LogSink } from "./log-writer.ts";
import { openLogStore } from "./open-log-store.ts";
import { type LogChunk, readLines } from "./task-log.ts";

let folder: string;
let bucket: { close(): void };
let places = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-log-store-"));
  bucket = { close: (await s3Server(["logs"])).asEnvironment() };
});

afterAll(async () => {
  bucket.close();
  await rm(folder, { recursive: true });
});

const KEY = "etl/7/load/-1/1-a.log";
/** Long enough that no timer ends the wait. */
const forever = { ms: 3_600_000, stop: new AbortController().signal };

describe.each([
  ["a folder", () => `file:${join(folder, `${++places}`)}`],
  ["a bucket", () => `s3://logs/in/${++places}`],
])("%s", (_name, place) => {
  let location: string;
  let logs: LogStore;
  let elsewhere: LogStore;

  beforeEach(async () => {
    location = place();
    logs = await open();
    elsewhere = await open();
  });

  async function open(): Promise<LogStore> {
    const store = await openLogStore(location, "/nowhere");
    onTestFinished(() => store.close());
    return store;
  }

  const listed = (store: LogStore, of = "etl/7") =>
    Array.fromAsync(store.view([of]).changed({ isAll: true }));

  async function find(store = elsewhere, key = KEY): Promise<StoredLog | undefined> {
    return (await listed(store, key.slice(0, key.lastIndexOf("/")))).find((log) => log.key === key);
  }

  async function content(store = elsewhere, key = KEY): Promise<string> {
    const log = await find(store, key);
    return log ? (await log.read(0, log.size)).toString() : "";
  }

  const read = async (offset: number): Promise<LogChunk> => readLines((await find())!, { offset });

  describe("writing", () => {
    it("stores all lines before the log is closed", async () => {
      const written = write(logs);
      const lines = Array.from({ length: 3_000 }, (_, at) => line(`${at} ${"x".repeat(500)}`));
      for (const each of lines) written.append(each);
      await written.close();
      expect(await content()).toBe(lines.join(""));
    });

    it("shows a line to other machines while the log grows", async () => {
      const written = write(logs);
      written.append(line("one"));
      await until(async () => (await content()) === line("one"));
      written.append(line("two"));
      await until(async () => (await content()) === line("one") + line("two"));
      await written.close();
    });

    it("continues a log where its last writer ended", async () => {
      for (const message of ["one", "two", "three"]) {
        const written = write(await open());
        written.append(line(message));
        await written.close();
      }
      expect(await content()).toBe(["one", "two", "three"].map(line).join(""));
    });

    it("begins a new line after the half line of a dead writer", async () => {
      await logs.append(KEY, 0, Buffer.from('{"half a li'));
      const written = write(elsewhere);
      written.append(line("next"));
      await written.close();
      expect(await content()).toBe(`{"half a li\n${line("next")}`);
    });

    it("creates nothing for a log without lines", async () => {
      await write(logs).close();
      expect(await logs.begin(KEY)).toBe(0);
      expect(await listed(logs, "")).toEqual([]);
    });
  });

  describe("appending", () => {
    const append = (store: LogStore, offset: number, text: string) =>
      store.append(KEY, offset, Buffer.from(text));

    it("adds nothing when a chunk is repeated, also by another server", async () => {
      expect(await append(logs, 0, "0123456789")).toBe(10);
      expect(await append(logs, 0, "0123456789")).toBe(10);
      expect(await append(elsewhere, 0, "0123456789")).toBe(10);
      expect(await append(elsewhere, 10, "abc\n")).toBe(14);
      expect(await append(logs, 10, "abc\n")).toBe(14);
      expect(await append(logs, 14, "def\n")).toBe(18);
      expect(await content()).toBe("0123456789abc\ndef\n");
    });

    it("adds the rest of a chunk of which a part is stored", async () => {
      await append(logs, 0, "0123");
      expect(await append(elsewhere, 2, "23456\n")).toBe(8);
      expect(await content()).toBe("0123456\n");
    });

    it("ignores a chunk that arrives after its successors", async () => {
      await append(logs, 0, "first\n");
      await append(elsewhere, 6, "second\n");
      await append(elsewhere, 13, "third\n");
      await append(logs, 6, "second\n");
      expect(await append(logs, 19, "fourth\n")).toBe(26);
      expect(await content()).toBe("first\nsecond\nthird\nfourth\n");
    });

    it("rejects a chunk after a gap, and other bytes at a known offset", async () => {
      await append(logs, 0, "0123456789");
      for (const store of [logs, elsewhere]) {
        await expect(append(store, 11, "x")).rejects.toMatchObject({ code: "LOG_CHUNK_REJECTED" });
        await expect(append(store, 0, "01x3")).rejects.toMatchObject({ code: "LOG_CHUNK_REJECTED" });
      }
      expect(await content()).toBe("0123456789");
    });

    it("begins after the half line of a dead writer, once", async () => {
      await append(logs, 0, "half a li");
      expect(await elsewhere.begin(KEY)).toBe(10);
      expect(await logs.begin(KEY)).toBe(10);
      expect(await append(elsewhere, 10, "next\n")).toBe(15);
      expect(await content()).toBe("half a li\nnext\n");
    });

    it("stores small and large chunks one after the other", async () => {
      const chunks = [3, 70_000, 10, 65_536, 1, 300_000, 30_000, 30_000, 30_000].map((bytes, at) =>
        `${at}`.repeat(bytes),
      );
      let offset = 0;
      for (const [at, chunk] of chunks.entries())
        offset = await append(at % 2 === 0 ? logs : elsewhere, offset, chunk);
      expect(await content()).toBe(chunks.join(""));
      const log = await find();
      expect((await log!.read(69_990, 70_020)).toString()).toBe(chunks.join("").slice(69_990, 70_020));
    });

    it("rejects a key that leads out of the store", async () => {
      for (const key of ["../a.log", "etl/../../a.log", "/etc/a.log", "etl//a.log"])
        await expect(logs.append(key, 0, Buffer.from("x"))).rejects.toThrow("invalid path of a log");
    });
  });

  describe("reading", () => {
    it("returns every line once in pieces of any size, and never half a line", async () => {
      const messages = Array.from({ length: 30 }, (_, at) => `line ${at} ${"ü".repeat(at)}`);
      await logs.append(KEY, 0, Buffer.from(messages.map(line).join("")));
      const log = (await find())!;
      for (const limit of [1, 7, 64, 100, 1_000, 1_000_000]) {
        const found: string[] = [];
        let chunk: LogChunk = { lines: [], nextOffset: 0, end: false };
        while (!chunk.end) {
          chunk = await readLines(log, { offset: chunk.nextOffset, limit });
          found.push(...texts(chunk));
        }
        expect(found).toEqual(messages);
      }
    });

    it("leaves an unfinished line for later", async () => {
      const text = line("one") + line("two");
      await logs.append(KEY, 0, Buffer.from(text.slice(0, -5)));
      const chunk = await read(0);
      expect(texts(chunk)).toEqual(["one"]);
      await elsewhere.append(KEY, text.length - 5, Buffer.from(text.slice(-5)));
      expect(texts(await read(chunk.nextOffset))).toEqual(["two"]);
    });

    it("moves an offset inside a line to the next line, and finds nothing past the end", async () => {
      await logs.append(KEY, 0, Buffer.from(line("one") + line("two")));
      expect(texts(await read(3))).toEqual(["two"]);
      expect(texts(await read(line("one").length))).toEqual(["two"]);
      expect(await read(9_999)).toEqual({ lines: [], nextOffset: 9_999, end: true });
    });

    it("reads a listed log although it has grown", async () => {
      await logs.append(KEY, 0, Buffer.from("first\n"));
      const before = (await find())!;
      await logs.append(KEY, 6, Buffer.from("second\n"));
      expect([before.size, (await before.read(0, before.size)).toString()]).toEqual([6, "first\n"]);
    });

    it("returns fewer bytes of a log that has been deleted", async () => {
      await logs.append(KEY, 0, Buffer.from("first\n"));
      const before = (await find())!;
      await elsewhere.remove("etl/7");
      expect(await before.read(0, 6)).toHaveLength(0);
      expect(await readLines(before)).toEqual({ lines: [], nextOffset: 0, end: true });
    });

    it("lists the logs below the named folders only", async () => {
      const keys = [
        "etl/7/load/-1/1-a.log",
        "etl/7/load/-1/1-a.trigger.log",
        "etl/7/load/-1/10-b.log",
        "etl/7/load/0/1-c.log",
        "etl/7/callbacks/run-1.log",
        "etl/70/load/-1/1-d.log",
        "etl/7/loads/-1/1-e.log",
      ];
      for (const key of keys) await logs.append(key, 0, Buffer.from(line(key)));
      const names = async (...of: string[]) =>
        (await Array.fromAsync(elsewhere.view(of).changed({ isAll: true }))).map(({ key }) => key).toSorted();
      expect(await names("etl/7/load/-1")).toEqual(keys.slice(0, 3).toSorted());
      expect(await names("etl/7")).toEqual(keys.filter((key) => key.startsWith("etl/7/")).toSorted());
      expect(await names("etl/7/load/0", "etl/7/callbacks", "etl/8")).toEqual([keys[4], keys[3]]);
      expect(await names("etl/7/..", "../x", "etl//7")).toEqual([]);
    });
  });

  describe("following", () => {
    it("reports a log in a folder that does not exist yet, and its growth", async () => {
      const view = elsewhere.view(["etl/7/load/-1"], { isFollowed: true });
      onTestFinished(() => view.close());
      const next = async (size: number) => {
        for (;;) {
          for await (const log of view.changed({ isAll: false })) if (log.size === size) return log.key;
          await view.wait(forever);
        }
      };
      for await (const log of view.changed({ isAll: true })) throw new Error(log.key);
      const first = next(6);
      await logs.append(KEY, 0, Buffer.from("first\n"));
      expect(await first).toBe(KEY);
      const second = next(13);
      await logs.append(KEY, 6, Buffer.from("second\n"));
      expect(await second).toBe(KEY);
    });

    it("ends a wait by a call, now or later, and when the reader stops", async () => {
      const view = elsewhere.view(["etl/7"], { isFollowed: true });
      onTestFinished(() => view.close());
      const look = () => Array.fromAsync(view.changed({ isAll: true }));
      await look();
      const waiting = view.wait(forever);
      view.wake();
      await waiting;
      await look();
      view.wake();
      await view.wait(forever);
      const stop = new AbortController();
      await look();
      const stopped = view.wait({ ms: forever.ms, stop: stop.signal });
      stop.abort();
      await stopped;
    });
  });

  describe("retention", () => {
    const clean = (olderThanMs: number, runs: readonly number[], dryRun = false) =>
      cleanLogs({ logs: elsewhere, olderThanMs, dryRun, existing: async () => new Set(runs) });

    it("deletes the logs of deleted runs that are old enough", async () => {
      for (const run of ["etl/1", "etl/2", "etl/12", "old/7", "etl/notes"])
        await logs.append(`${run}/load/-1/1-a.log`, 0, Buffer.from(line(run)));
      const left = async () => (await listed(logs, "")).map(({ key }) => key.split("/load")[0]).toSorted();
      expect(await clean(86_400_000, [2])).toBe(0);
      expect(await clean(-60_000, [2], true)).toBe(3);
      expect(await left()).toHaveLength(5);
      expect(await clean(-60_000, [2])).toBe(3);
      expect(await left()).toEqual(["etl/2", "etl/notes"]);
      expect(await clean(-60_000, [2])).toBe(0);
    });

    it("finds nothing in an empty store", async () => {
      expect(await clean(0, [])).toBe(0);
    });
  });
});

it("reads no file through a link that leads out of the folder", async () => {
  const logs = await openLogStore(`file:${join(folder, "linked")}`, "/nowhere");
  await logs.append("etl/7/load/-1/1-a.log", 0, Buffer.from(line("ours")));
  await writeFile(join(folder, "outside.log"), line("not ours"));
  await symlink(join(folder, "outside.log"), join(folder, "linked/etl/7/load/-1/1-link.log"));
  await symlink(folder, join(folder, "linked/etl/7/all"));
  const found = await Array.fromAsync(logs.view(["etl/7"]).changed({ isAll: true }));
  expect(found.map(({ key }) => key)).toEqual(["etl/7/load/-1/1-a.log"]);
});

function write(store: LogStore): LogSink {
  const onError = (error: unknown) => {
    throw error;
  };
  return store.open(KEY, { onPressure: () => {}, onError });
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
}

function line(message: string): string {
  return `${JSON.stringify({ t: new Date(0).toISOString(), level: "info", source: "stdout", message })}\n`;
}

function texts(chunk: LogChunk): string[] {
  return chunk.lines.map(({ message }) => message);
}

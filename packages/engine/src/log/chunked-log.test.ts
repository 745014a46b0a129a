/** A log that is sent in chunks, to a folder whose answers the test controls. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { ChunkedLog } from "./chunked-log.ts";
import { LogFolder } from "./log-folder.ts";

const KEY = "etl/7/load/-1/1-a.log";

let folder: string;
let logs: LogFolder;
/** Called after each chunk was stored, before the writer gets the answer. */
let answer: () => Promise<void>;
/** Called before each chunk. */
let arrive: () => Promise<void>;
let pressure: boolean[];
let errors: unknown[];
let onError: (error: unknown) => void;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-chunks-"));
  logs = new LogFolder(folder);
  arrive = async () => {};
  answer = async () => {};
  pressure = [];
  errors = [];
  onError = (error) => errors.push(error);
  return () => rm(folder, { recursive: true });
});

const open = () =>
  new ChunkedLog(
    {
      begin: () => logs.begin(KEY),
      append: async (offset, bytes) => {
        await arrive();
        await logs.append(KEY, offset, bytes);
        await answer();
      },
    },
    { onPressure: (high) => pressure.push(high), onError: (error) => onError(error) },
  );

const content = () => readFile(join(folder, KEY), "utf8");

it("sends a chunk again whose answer was lost, and adds nothing twice", async () => {
  let lost = 2;
  answer = async () => {
    if (lost-- > 0) throw new Error("the connection was closed");
  };
  const log = open();
  log.append("one\n");
  await log.close();
  await log.done;
  expect(await content()).toBe("one\n");
  expect(errors).toHaveLength(1);
});

it("keeps a limited number of lines while the store is away, slows nothing down, and reports what was lost", async () => {
  const failed = Promise.withResolvers<void>();
  let isAway = true;
  arrive = async () => {
    if (isAway) throw new Error("away");
  };
  onError = () => failed.resolve();
  const log = open();
  const line = (at: number) => `${at} ${"x".repeat(1_000)}\n`;
  for (let at = 0; at < 300; at++) log.append(line(at));
  await failed.promise;
  for (let at = 300; at < 2_000; at++) log.append(line(at));
  expect(pressure).toEqual([]);
  isAway = false;
  await log.close();
  await log.done;
  const lines = (await content()).split("\n").slice(0, -1);
  const kept = lines.slice(0, -1);
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, at) => line(at).slice(0, -1)));
  expect(kept.length).toBeGreaterThan(1_000);
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({
    level: "warn",
    source: "engine",
    message: `${2_000 - kept.length} lines were lost because the log store did not answer.`,
  });
});

it("slows the task down while the store answers too slowly", async () => {
  const gate = Promise.withResolvers<void>();
  arrive = () => gate.promise;
  const log = open();
  for (let at = 0; at < 2_000; at++) log.append(`${"x".repeat(1_000)}\n`);
  expect(pressure).toEqual([true]);
  gate.resolve();
  await log.close();
  expect(pressure).toEqual([true, false]);
  expect(await content()).toHaveLength(2_000 * 1_001);
  expect(errors).toEqual([]);
});

it("does not wait at its end for a store that is away", async () => {
  arrive = async () => {
    throw new Error("away");
  };
  const log = open();
  log.append("one\n");
  await log.close();
  log.abandon();
  await log.done;
  expect(errors).toMatchObject([{ message: "away" }]);
});

it("gives up when another writer has written", async () => {
  const log = open();
  arrive = async () => {
    await logs.append(KEY, 0, Buffer.from("of another writer\n"));
  };
  log.append("one\n");
  await log.close();
  await log.done;
  log.append("two\n");
  expect(errors).toMatchObject([{ code: "LOG_CHUNK_REJECTED" }]);
  expect(await content()).toBe("of another writer\n");
});

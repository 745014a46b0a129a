/** One stream without HTTP: its time, and a browser that does not read. */
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { testDatabase } from "../../../test/support/test-database.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { silentLogger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import { LiveBuffer } from "./live-buffer.ts";
import { LiveFeed } from "./live-feed.ts";
import type { LiveMessage } from "./live-messages.ts";
import { LiveStream, TIMING } from "./live-stream.ts";

let database: Database;

beforeAll(async () => {
  const test = await testDatabase();
  database = test.db;
  return () => test.close();
});

const NEVER = new AbortController().signal;

function feedOf(lingerMs?: number): LiveFeed {
  const wakeUps = new WakeUps(database);
  const feed = new LiveFeed({
    ...{ database, wakeUps, logger: silentLogger },
    ...(lingerMs === undefined ? {} : { lingerMs }),
  });
  onTestFinished(async () => {
    await feed.close();
    await wakeUps.close();
  });
  return feed;
}

const asset = (name: string): LiveMessage => ({ topic: "assets", assets: [name], more: false });

async function opened(stream: LiveStream, last: string | null = null) {
  const events = stream.events(NEVER, last);
  onTestFinished(async () => void (await events.return()));
  const next = async () => (await events.next()).value as string | undefined;
  expect(await next()).toBe("retry: 1000\n\n");
  expect(await next()).toContain("event: open");
  return { events, next };
}

test("sends a comment while nothing happens, with the id up to which the browser has everything", async () => {
  expect(TIMING).toEqual({ heartbeatMs: 15_000, mostMs: 600_000 });
  const feed = feedOf();
  const { next } = await opened(new LiveStream(feed, ["assets"], { heartbeatMs: 30, mostMs: 60_000 }));
  const { buffer } = feed;
  expect(await next()).toBe(`: heartbeat\nid: ${buffer.idOf(0)}\n\n`);
  // Messages of other topics are not sent, but count as received.
  buffer.append([{ topic: "audit" }, { topic: "audit" }]);
  expect(await next()).toBe(`: heartbeat\nid: ${buffer.idOf(2)}\n\n`);
  buffer.append([asset("a")]);
  expect(await next()).toContain(`id: ${buffer.idOf(3)}\nevent: change\ndata: {"topic":"assets"`);
});

test("ends after its time", async () => {
  const began = performance.now();
  const { next } = await opened(new LiveStream(feedOf(), ["assets"], { heartbeatMs: 60_000, mostMs: 50 }));
  expect(await next()).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(10_000);
});

test("keeps nothing for a browser that does not read, which then reads its data again", async () => {
  const feed = feedOf();
  const { buffer } = feed;
  const { next } = await opened(new LiveStream(feed, ["assets", "audit"]));
  const long = "x".repeat(2_000);
  for (let n = 0; n < 30_000; n++) buffer.append([asset(`${n} ${long}`)]);
  expect(buffer.has(buffer.last - 1_000)).toBe(true);
  expect(buffer.has(buffer.last - 10_000)).toBe(false);
  const lost = await next();
  expect(lost).toBe(`id: ${buffer.idOf(30_000)}\nevent: resync\ndata: {"topics":["assets","audit"]}\n\n`);
  buffer.append([asset("later")]);
  expect(await next()).toContain('"later"');
});

test("sends what a slow browser has missed in pieces, in order", async () => {
  const feed = feedOf();
  const { next } = await opened(new LiveStream(feed, ["assets"]));
  for (let n = 0; n < 5_000; n++) feed.buffer.append([asset(`asset ${n}`)]);
  let text = "";
  let most = 0;
  while (!text.includes('"asset 4999"')) {
    const piece = (await next())!;
    most = Math.max(most, piece.length);
    text += piece;
  }
  expect(most).toBeLessThan(70_000);
  const seen = [...text.matchAll(/"asset (\d+)"/g)].map(([, n]) => Number(n));
  expect(seen).toEqual(Array.from({ length: 5_000 }, (_, n) => n));
});

test("rests after the last browser has left for long enough", async () => {
  const feed = feedOf(50);
  const first = await opened(new LiveStream(feed, ["jobs", "dag:etl", "run:etl/1"]));
  expect([feed.watched.has("jobs"), [...feed.watched.dags], [...feed.watched.runs]]).toEqual([
    true,
    ["etl"],
    ["etl/1"],
  ]);
  await first.events.return();
  expect(feed.watched.has("jobs")).toBe(true);
  await expect.poll(() => feed.watched.isEmpty).toBe(true);
  const { buffer } = feed;
  const again = new LiveStream(feed, ["jobs"]);
  const { next } = await opened(again, buffer.idOf(0));
  expect(await next()).toContain('event: resync\ndata: {"topics":["jobs"]}');
});

test("the buffer drops its oldest messages first, by number and by size", () => {
  for (const limits of [
    { messages: 100, size: 1e9 },
    { messages: 1e9, size: 8_000 },
  ]) {
    const buffer = new LiveBuffer(limits);
    const topics = new Set(["assets"]);
    for (let n = 1; n <= 1_000; n++) {
      buffer.append([asset(`a${n}`)]);
      expect(buffer.last).toBe(n);
      expect(buffer.after(n - 1, topics, 1e9)?.text).toContain(`"a${n}"`);
    }
    const kept = Array.from({ length: 1_001 }, (_, n) => n).filter((n) => buffer.has(n));
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, n) => 1_001 - kept.length + n));
    expect(kept.length).toBeLessThanOrEqual(101);
    expect(kept.length).toBeGreaterThan(50);
    expect(buffer.after(kept[0]! - 1, topics, 1e9)).toBeNull();
    expect(buffer.after(kept[0]!, topics, 1e9)?.text.match(/event: change/g)).toHaveLength(kept.length - 1);
    buffer.reset();
    expect(kept.some((n) => buffer.has(n))).toBe(false);
    expect(buffer.has(buffer.last)).toBe(true);
    expect(buffer.cursorOf(buffer.idOf(7))).toBe(7);
    expect(new LiveBuffer().cursorOf(buffer.idOf(7))).toBeNull();
  }
});

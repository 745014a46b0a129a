import { beforeAll, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { redisServer, type TestRedis } from "../../../test/support/redis-server.ts";
import { silentLogger } from "../../service/logger.ts";
import { queueKey } from "./queue-connection.ts";
import { QueueConsumer } from "./queue-consumer.ts";

let redis: TestRedis;

beforeAll(async () => {
  redis = await redisServer();
});

beforeEach(async () => {
  await redis.client.flushall();
});

/** A worker whose assignments end when the test says so. */
function worker(slots: number, queues: readonly string[] = ["default"]) {
  const received: string[] = [];
  const running = new Map<string, () => void>();
  const state = { slots };
  const consumer = new QueueConsumer({
    url: `redis://127.0.0.1:${redis.port}`,
    queues,
    room: () => state.slots - running.size,
    logger: silentLogger,
    run: (id) => {
      received.push(id);
      return new Promise<void>((resolve) => running.set(id, resolve));
    },
  });
  consumer.start();
  onTestFinished(() => consumer.pause());
  const end = (id: string) => {
    running.get(id)?.();
    running.delete(id);
  };
  const has = (...ids: string[]) => vi.waitFor(() => expect(received).toEqual(ids), { timeout: 5_000 });
  return { consumer, end, has, received, state };
}

/** Ids with their scores. */
async function send(queue: string, messages: Readonly<Record<string, number>>): Promise<void> {
  await redis.client.zadd(queueKey(queue), ...Object.entries(messages).flatMap(([id, score]) => [score, id]));
}

it("receives as many messages as there is room for: by score, then by id", async () => {
  await send("default", { d: 0, c: 0, b: 0, a: 5, e: -1 });
  const { end, has } = worker(2);
  await has("e", "b");
  expect(await redis.client.zcard(queueKey("default"))).toBe(3);
  end("b");
  await has("e", "b", "c");
  expect(await redis.client.zrange(queueKey("default"), 0, "-1")).toEqual(["d", "a"]);
});

it("receives from each queue while another one is never empty", async () => {
  await send("busy", { a: 0, b: 0, c: 0 });
  await send("rare", { z: 0 });
  const { end, has } = worker(1, ["busy", "rare"]);
  await has("a");
  end("a");
  await has("a", "z");
  end("z");
  await has("a", "z", "b");
});

it("waits for a message in all queues", async () => {
  const { has } = worker(2, ["one", "two"]);
  await send("two", { a: 0 });
  await has("a");
  await send("one", { b: 0 });
  await has("a", "b");
});

it("receives one message when none is in hand, although no room is reported", async () => {
  await send("default", { a: 0, b: 0 });
  const { end, has } = worker(0);
  await has("a");
  end("a");
  await has("a", "b");
});

it("receives more when room grows although no assignment has ended", async () => {
  await send("default", { a: 0, b: 0 });
  const { has, state } = worker(1);
  await has("a");
  state.slots = 2;
  await has("a", "b");
});

it("receives nothing while it is paused", async () => {
  const { consumer, end, has, received } = worker(1);
  await send("default", { a: 0 });
  await has("a");
  consumer.pause();
  await send("default", { b: 0 });
  end("a");
  consumer.resume();
  await has("a", "b");
  consumer.pause();
  end("b");
  await send("default", { c: 0 });
  expect(received).toEqual(["a", "b"]);
  expect(await redis.client.zrange(queueKey("default"), 0, "-1")).toEqual(["c"]);
});

it("receives again when Redis is back", async () => {
  const { has } = worker(2);
  await send("default", { a: 0 });
  await has("a");
  await redis.down();
  await redis.up("empty");
  await send("default", { b: 0 });
  await has("a", "b");
});

import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { launcherHost } from "../../../test/support/launcher-host.ts";
import { redisServer, type TestRedis } from "../../../test/support/redis-server.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import type { Database } from "../../store/database/database.ts";
import {
  insertAssignments,
  type NewAssignment,
  unclaimedAssignments,
} from "../../store/execute/assignments.ts";
import { QueueLauncher } from "./queue-launcher.ts";

let redis: TestRedis;

beforeAll(async () => {
  redis = await redisServer();
});

/** A launcher that sweeps often, on an empty Redis. */
async function open({ sendTimeoutMs = 1_000, server = redis } = {}) {
  const { db } = await testDatabase();
  await server.client.flushall();
  const launcher = new QueueLauncher({
    url: `redis://127.0.0.1:${server.port}`,
    sweepMs: 100,
    sendTimeoutMs,
  });
  await launcher.start(launcherHost({ unclaimed: (page) => unclaimedAssignments(db, "queue", page) }));
  onTestFinished(() => launcher.stop());
  const messages = (queue: string) => server.client.zcard(`tradewind:${queue}`);
  const has = async (queue: string, count: number) => {
    while ((await messages(queue)) !== count) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  return { db, launcher, messages, has };
}

/** All in one statement, as after a burst: they have the same time. */
async function store(db: Database, queue: string, count: number) {
  const rows = Array.from({ length: count }, (): NewAssignment => {
    const place = { dagRunId: null, taskId: null, mapIndex: null, executor: "queue", queue };
    return { id: randomUUID(), kind: "callback", ...place, priority: 1, config: null, content: {} };
  });
  await insertAssignments(db, rows);
  return rows.map(({ config, id, priority }) => ({ id, priority, queue, config }));
}

describe("the queue launcher", () => {
  it("sends the whole backlog again after Redis has lost its data", async () => {
    const { db, has, launcher } = await open();
    launcher.launch(await store(db, "default", 1_300));
    await has("default", 1_300);
    await redis.client.flushall();
    await has("default", 1_300);
  });

  it("finds a lost message behind a long backlog of a queue that no worker serves", async () => {
    const { db, has, launcher } = await open();
    launcher.launch(await store(db, "abandoned", 1_300));
    await has("abandoned", 1_300);
    await store(db, "default", 1);
    await has("default", 1);
  });

  it("sends an assignment that was stored and never launched", async () => {
    const { db, has } = await open();
    await store(db, "default", 3);
    await has("default", 3);
  });

  it("sends a message once, however often it is launched", async () => {
    const { db, has, launcher, messages } = await open();
    const requests = await store(db, "default", 3);
    for (let n = 0; n < 5; n++) launcher.launch(requests);
    await has("default", 3);
    launcher.launch(await store(db, "other", 1));
    await has("other", 1);
    expect(await messages("default")).toBe(3);
  });

  it("sends to a Redis that was away when it sent for the first time", async () => {
    const { db, has, launcher } = await open();
    await redis.down();
    launcher.launch(await store(db, "default", 1));
    // Every attempt to connect has failed by then.
    await vi.waitFor(() => expect(launcher.problem()).toContain("max retries"), { timeout: 20_000 });
    await redis.up("empty");
    await has("default", 1);
  });

  it("has no problem as soon as Redis is back, although there is nothing to send", async () => {
    const { launcher } = await open();
    await redis.down();
    // It ends before Redis is back: no assignment is stored.
    launcher.launch([{ id: randomUUID(), queue: "default", priority: 1, config: null }]);
    await vi.waitFor(() => expect(launcher.problem()).toContain("max retries"), { timeout: 20_000 });
    await redis.up("empty");
    await vi.waitFor(() => expect(launcher.problem()).toBeNull(), { timeout: 10_000 });
  });
});

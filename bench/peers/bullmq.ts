/**
 * A job queue on Redis, which is asked to append every write to its log but to sync it once a second, as it does by
 * default: what the others commit durably is not quite durable here. Needs `redis-server` on PATH.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Countdown, load, type OpenPeer } from "./peer.ts";

interface BullMq {
  readonly Queue: new (
    name: string,
    options: object,
  ) => {
    add(name: string, data: object, options?: object): Promise<unknown>;
    addBulk(jobs: readonly object[]): Promise<unknown>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    handler: (job: { name: string; data: { left: number; width: number } }) => Promise<void>,
    options: object,
  ) => { waitUntilReady(): Promise<unknown>; close(force?: boolean): Promise<void> };
}

export const open: OpenPeer = async () => {
  const { Queue, Worker } = await load<BullMq>("bullmq");
  const folder = await mkdtemp(join(tmpdir(), "tradewind-bench-redis-"));
  const port = await freePort();
  const settings = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes"];
  const server = spawn("redis-server", settings, { stdio: "ignore" });
  const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true } });
  let countdown = new Countdown(1);
  const jobs = (name: string, count: number) =>
    Array.from({ length: count }, () => ({ name, data: { left: 0, width: 0 } }));
  const worker = new Worker(
    "bench",
    async ({ name, data }) => {
      if (name === "chain" && data.left > 1) await queue.add("chain", { left: data.left - 1, width: 0 });
      else if (name === "first") await queue.addBulk(jobs("single", data.width));
      else countdown.done();
    },
    { connection, concurrency: 50 },
  );
  await worker.waitUntilReady();
  const chain = async (tasks: number) => {
    countdown = new Countdown(1);
    await queue.add("chain", { left: tasks, width: 0 });
    await countdown.over;
  };
  return {
    note: "Redis with its log synced once a second (not fsynced per step), concurrency 50; chain and fan-in by hand, fan-in counted in memory; ends seen in the handler, before their commit",
    independentTasks: 10_000,
    chain,
    async fan(width) {
      countdown = new Countdown(width);
      await queue.add("first", { left: 0, width });
      await countdown.over;
      await chain(1);
    },
    async independent(tasks) {
      countdown = new Countdown(tasks);
      for (let at = 0; at < tasks; at += 1_000)
        await queue.addBulk(jobs("single", Math.min(1_000, tasks - at)));
      await countdown.over;
    },
    async close() {
      await worker.close(true);
      await queue.close();
      server.kill();
      await once(server, "exit");
      await rm(folder, { recursive: true, force: true });
    },
  };
};

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/**
 * A job queue on Redis, with a separate server that syncs its log before it answers a write: as durable as the commits of
 * the others. By default Redis syncs once a second. Needs `redis-server` on PATH.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
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
  ) => {
    on(event: "error", listener: () => void): void;
    waitUntilReady(): Promise<unknown>;
    close(force?: boolean): Promise<void>;
  };
}

export const open: OpenPeer = async () => {
  const { Queue, Worker } = await load<BullMq>("bullmq");
  const folder = await mkdtemp(join(tmpdir(), "tradewind-bench-redis-"));
  const port = await freePort();
  const server = await startRedis(folder, port);
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
  worker.on("error", () => {});
  await worker.waitUntilReady();
  const chain = async (tasks: number) => {
    countdown = new Countdown(1);
    await queue.add("chain", { left: tasks, width: 0 });
    await countdown.over;
  };
  return {
    note: "Redis that syncs its log at every write (appendfsync always), concurrency 50; chain and fan-in implemented manually, fan-in counted in memory; ends seen in the handler, before their commit",
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

async function startRedis(folder: string, port: number): Promise<ChildProcess> {
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: folder,
    appendonly: "yes",
    appendfsync: "always",
    // No snapshots beside the log.
    save: "",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const server = spawn("redis-server", args, { stdio: ["ignore", "pipe", "ignore"] });
  process.once("exit", () => server.kill("SIGKILL"));
  let log = "";
  await new Promise<void>((resolve, reject) => {
    server.stdout.on("data", (chunk) => {
      log += chunk;
      if (log.includes("Ready to accept connections")) resolve();
    });
    server.once("error", reject);
    server.once("exit", () => reject(new Error(`redis-server ended: ${log.trim().slice(-500)}`)));
  });
  return server;
}

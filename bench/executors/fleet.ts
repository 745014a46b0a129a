/** A rig with the queue executor: Redis, the API in the process of the scheduler, and workers in processes of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { createApi } from "../../packages/engine/src/process/api.ts";
import { createToken } from "../../packages/engine/src/store/access/tokens.ts";
import { redisServer } from "../../packages/engine/test/support/redis-server.ts";
import { openRig, type Rig } from "../rig.ts";

const CLI = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));
const TOKEN = "tw_benchmark-worker-token";

export interface Fleet {
  readonly rig: Rig;
  readonly redisUrl: string;
  stop(): Promise<void>;
}

/** @param workers How many, each with this many slots. */
export async function openFleet(workers: number, concurrency: number): Promise<Fleet> {
  const redis = await redisServer();
  const redisUrl = `redis://127.0.0.1:${redis.port}`;
  const rig = await openRig({ executor: "queue", redisUrl });
  const config = { ...rig.parts.config, port: 0 };
  const { api, close } = await createApi({ ...rig.parts, config });
  await api.start();
  await createToken(rig.database, { name: "worker", token: TOKEN, role: "worker", expiresAt: null });
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-workers-"));
  const processes = await Promise.all(
    Array.from({ length: workers }, (_, at) =>
      startWorker({ url: api.url, redisUrl, home: join(root, `${at}`), concurrency }),
    ),
  );
  return {
    rig,
    redisUrl,
    async stop() {
      await Promise.all(processes.map(stopProcess));
      await api.stop();
      await close();
      await rig.stop();
      await redis.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

async function startWorker(worker: {
  readonly url: string;
  readonly redisUrl: string;
  readonly home: string;
  readonly concurrency: number;
}): Promise<ChildProcess> {
  const { concurrency, home, redisUrl, url } = worker;
  const { HOME, PATH } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=source", CLI, "worker", "--concurrency", `${concurrency}`, "--home", home],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: {
        ...{ HOME, PATH, TRADEWIND_LOG_LEVEL: "warn", TRADEWIND_URL: url, TRADEWIND_TOKEN: TOKEN },
        REDIS_URL: redisUrl,
      },
    },
  );
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    if (!line.includes("worker is running")) continue;
    child.stderr.pipe(process.stderr);
    return child;
  }
  throw new Error(`the worker has ended:\n${said.join("\n")}`);
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}

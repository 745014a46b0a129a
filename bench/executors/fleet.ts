/** A rig with the queue executor: Redis, the API in the process of the scheduler, and workers in processes of their own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApi } from "../../packages/engine/src/process/api.ts";
import { createToken } from "../../packages/engine/src/store/access/tokens.ts";
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";
import { redisServer } from "../../packages/engine/test/support/redis-server.ts";
import { type Child, showOutput, startTradewind } from "../child.ts";
import { openRig, type Rig } from "../rig.ts";
import { until } from "../until.ts";

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
      startWorker(rig.database, { url: api.url, redisUrl, home: join(root, `${at}`), concurrency }),
    ),
  );
  return {
    rig,
    redisUrl,
    async stop() {
      await Promise.all(processes.map((child) => child.stop()));
      await api.stop();
      await close();
      await rig.stop();
      await redis.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Resolves when the worker is registered. */
async function startWorker(
  database: Database,
  worker: {
    readonly url: string;
    readonly redisUrl: string;
    readonly home: string;
    readonly concurrency: number;
  },
): Promise<Child> {
  const { concurrency, home, redisUrl, url } = worker;
  const child = startTradewind(
    ["worker", "--concurrency", `${concurrency}`, "--home", home, "--name", home],
    {
      TRADEWIND_LOG_LEVEL: "warn",
      TRADEWIND_URL: url,
      TRADEWIND_TOKEN: TOKEN,
      REDIS_URL: redisUrl,
    },
  );
  showOutput(child);
  await child.during(
    until(
      `worker ${home} is registered`,
      async () => (await database.rows(IS_REGISTERED, [home])).length > 0,
    ),
  );
  return child;
}

const IS_REGISTERED = adhoc("SELECT FROM job WHERE kind = 'worker' AND name = $1");

/** Installations for the conformance suite of executors: schedulers and workers are processes, which a case kills and stops. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import type { ExecutorSubject } from "../../src/execute/conformance/conformance.ts";
import { EXAMPLE_DAGS } from "../../src/execute/conformance/conformance.ts";
import { queueKey } from "../../src/execute/queue/queue-connection.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { createApi } from "../../src/process/api.ts";
import { openLogs } from "../../src/process/parts/log-store.ts";
import { createTriggerer } from "../../src/process/triggerer.ts";
import { launchToken } from "../../src/secret/attempt-token.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { newToken, openHome } from "../../src/service/home.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { createToken, ensureAdminToken } from "../../src/store/access/tokens.ts";
import { Database } from "../../src/store/database/database.ts";
import type { ComponentProcess } from "../fault/component-process.ts";
import { FaultInstallation } from "../fault/installation.ts";
import { WorkerProcess } from "../fault/worker-process.ts";
import { afterFile } from "../support/after-file.ts";
import { redisServer } from "../support/redis-server.ts";
import { testDatabase } from "../support/test-database.ts";

const SECRET_KEY = Buffer.alloc(32, 7).toString("base64url");
/** Short, so that a death is noticed soon: time to live, renewal, margin. */
const LEASE = [3_000, 500, 800] as const;
const WORKER_LEASE_MS = 3_000;
const SETTINGS = { TRADEWIND_SECRET_KEY: SECRET_KEY, TRADEWIND_DRAIN: "3s", TRADEWIND_STOP_GRACE_MS: "1000" };

export interface Site {
  readonly installation: FaultInstallation;
  readonly url: string;
  readonly token: string;
  /** Starts another scheduler; its log folder is that of the API. */
  scheduler(environment: Readonly<Record<string, string>>): Promise<ComponentProcess>;
}

/** An API, a triggerer and the example DAGs, without a scheduler. */
export async function openSite(): Promise<Site> {
  const { url } = await testDatabase();
  const installation = await FaultInstallation.open(url);
  const token = newToken();
  await ensureAdminToken(installation.db, token);
  await installation.publishFiles(EXAMPLE_DAGS);
  const place = installation.place("site", { lease: LEASE, parallelism: 8 });
  const config = resolveConfig({ home: place.home, port: 0 }, {});
  const database = Database.connect(url);
  const wakeUps = new WakeUps(database);
  const secretBox = new SecretBox([Buffer.from(SECRET_KEY, "base64url")]);
  const home = await openHome(config.home);
  const logs = await openLogs(config);
  const parts = { config, database, home, logger: silentLogger, logs, secretBox, wakeUps };
  const { api, close } = await createApi({ ...parts, workerLeaseMs: WORKER_LEASE_MS });
  const triggerer = createTriggerer(parts);
  await Promise.all([api.start(), triggerer.start()]);
  opened.push(async () => {
    await api.stop();
    await triggerer.stop(0);
    await close();
    await wakeUps.close();
    await database.close();
  });
  const scheduler = (environment: Readonly<Record<string, string>>) =>
    installation.start({ ...place, environment: { ...SETTINGS, ...environment } });
  return { installation, url: api.url, token, scheduler };
}

export async function localSubject(): Promise<ExecutorSubject> {
  const { scheduler, token, url } = await openSite();
  let current = await scheduler({});
  const replace = async (end: (former: ComponentProcess) => unknown) => {
    await end(current);
    current = await scheduler({});
  };
  return {
    url,
    token,
    isRemote: false,
    killScheduler: () => replace((former) => former.kill()),
    killRunner: () => replace((former) => former.kill()),
    // It goes on while the next one starts.
    stopRunner: () => replace((former) => void former.terminate()),
    launchAgain: async () => {},
  };
}

/** Starts a process; the result kills it and starts another. */
async function restartable(start: () => Promise<ComponentProcess>): Promise<() => Promise<void>> {
  let current = await start();
  return async () => {
    await current.kill();
    current = await start();
  };
}

/** Two workers, so that a repeated message may reach another one. */
export async function queueSubject(): Promise<ExecutorSubject> {
  const [site, redis] = await Promise.all([openSite(), redisServer()]);
  const { installation, token, url } = site;
  const redisUrl = `redis://127.0.0.1:${redis.port}`;
  const environment = { TRADEWIND_EXECUTOR: "queue", REDIS_URL: redisUrl };
  const workerToken = `tw_${randomBytes(24).toString("base64url")}`;
  await createToken(installation.db, { name: "worker", token: workerToken, role: "worker", expiresAt: null });
  let started = 0;
  const startWorker = () => {
    const home = join(installation.root, `worker-${started++}`);
    const place = { home, ledger: installation.ledger.path, url, token: workerToken, redisUrl, slots: 4 };
    return installation.comeUp(() => new WorkerProcess({ ...place, environment: SETTINGS }));
  };
  const [killScheduler] = await Promise.all([
    restartable(() => site.scheduler(environment)),
    startWorker(),
    startWorker(),
  ]);
  const runnerOf = async (attempt: string): Promise<ComponentProcess> => {
    const sql = "SELECT j.pid FROM assignment a JOIN job j ON j.id = a.worker_job WHERE a.id = $1";
    const [row] = await installation.sql<{ pid: number }>(sql, [attempt]);
    const runner = [...installation.processes].find(({ pid }) => pid === row?.pid);
    if (runner === undefined) throw new Error(`no worker has ${attempt}`);
    return runner;
  };
  return {
    url,
    token,
    isRemote: true,
    killScheduler,
    killRunner: async (attempt) => {
      await (await runnerOf(attempt)).kill();
      await startWorker();
    },
    stopRunner: async (attempt) => {
      void (await runnerOf(attempt)).terminate();
      await startWorker();
    },
    launchAgain: async (attempts) => {
      await redis.client.zadd(queueKey("default"), ...attempts.flatMap((id) => [0, id]));
    },
  };
}

/**
 * The executor of a module whose options are the address of the API and a command that it runs, followed by `execute` and an id.
 * @param command Starts `tradewind`.
 */
export async function commandSubject(module: string, command: readonly string[]): Promise<ExecutorSubject> {
  const { installation, scheduler: startScheduler, token, url } = await openSite();
  const drained = ["env", "TRADEWIND_DRAIN=3s", "TRADEWIND_STOP_GRACE_MS=1000", ...command];
  const environment = {
    TRADEWIND_EXECUTOR: "command",
    TRADEWIND_EXECUTORS: JSON.stringify({ command: { module, options: { url, command: drained } } }),
  };
  const killScheduler = await restartable(() => startScheduler(environment));
  const signal = async (attempt: string, name: NodeJS.Signals) => {
    const sql = "SELECT j.pid FROM assignment a JOIN job j ON j.id = a.worker_job WHERE a.id = $1";
    const [row] = await installation.sql<{ pid: number }>(sql, [attempt]);
    if (row === undefined) throw new Error(`no worker has ${attempt}`);
    process.kill(row.pid, name);
  };
  const secretBox = new SecretBox([Buffer.from(SECRET_KEY, "base64url")]);
  const again = async (id: string) => {
    const [program = "", ...args] = [...command, "execute", id];
    const env = {
      PATH: process.env.PATH,
      TRADEWIND_URL: url,
      TRADEWIND_LAUNCH_TOKEN: launchToken(secretBox, id),
    };
    await once(spawn(program, args, { env, stdio: "ignore" }), "exit");
  };
  return {
    url,
    token,
    isRemote: true,
    killScheduler,
    killRunner: (attempt) => signal(attempt, "SIGKILL"),
    stopRunner: (attempt) => signal(attempt, "SIGTERM"),
    launchAgain: async (attempts) => {
      await Promise.all(attempts.map(again));
    },
  };
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});

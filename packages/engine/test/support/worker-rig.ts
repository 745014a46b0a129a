/**
 * An installation with workers: a scheduler with the queue executor, Redis, an API that can be restarted, and workers that
 * reach it through a proxy. All in this process, apart from tasks.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFolder } from "../../src/log/log-folder.ts";
import type { LogWriter } from "../../src/log/log-writer.ts";
import { newToken } from "../../src/service/home.ts";
import { createToken, ensureAdminToken } from "../../src/store/access/tokens.ts";
import { afterFile } from "./after-file.ts";
import { ApiProxy } from "./api-proxy.ts";
import { redisServer } from "./redis-server.ts";
import { type StartedApi, type StartedWorker, startTestApi, startTestWorker } from "./remote-parts.ts";
import { SchedulerRig } from "./scheduler-rig.ts";

export class WorkerRig {
  readonly rig: SchedulerRig;
  /** Between the workers and the API. */
  readonly proxy: ApiProxy;
  readonly redisUrl: string;
  readonly adminToken: string;
  readonly workerToken: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #undo: (() => Promise<unknown>)[] = [];
  #api: StartedApi | null = null;

  /** @param settings Environment variables of the services. */
  static async open(settings: Readonly<Record<string, string>> = {}): Promise<WorkerRig> {
    const rig = await SchedulerRig.open();
    // Started as root, tasks have an account of their own, and see files of the test.
    await chmod(rig.root, 0o755);
    const password = "redis-pass-word";
    const redis = await redisServer({ password });
    const redisUrl = `redis://:${password}@127.0.0.1:${redis.port}`;
    const opened = new WorkerRig(rig, await ApiProxy.open(), redisUrl, settings);
    rigs.push(opened);
    await ensureAdminToken(rig.db, opened.adminToken);
    const token = { name: "worker", token: opened.workerToken, role: "worker", expiresAt: null } as const;
    await createToken(rig.db, token);
    await opened.startApi();
    await rig.scheduler({
      settings: { TRADEWIND_EXECUTOR: "queue", REDIS_URL: opened.redisUrl, ...settings },
    });
    return opened;
  }

  private constructor(
    rig: SchedulerRig,
    proxy: ApiProxy,
    redisUrl: string,
    settings: Readonly<Record<string, string>>,
  ) {
    this.rig = rig;
    this.proxy = proxy;
    this.redisUrl = redisUrl;
    this.adminToken = newToken();
    this.workerToken = newToken();
    this.#settings = settings;
  }

  get apiUrl(): string {
    if (this.#api === null) throw new Error("the API is not running");
    return this.#api.url;
  }

  /** The logs of the installation. */
  get logs(): LogWriter {
    return new LogFolder(join(this.rig.root, "home", "logs"));
  }

  async startApi(): Promise<void> {
    const { db: database, root, secretBox, wakeUps } = this.rig;
    const parts = { database, secretBox, wakeUps, settings: this.#settings };
    this.#api = await startTestApi(join(root, "home"), parts);
    this.proxy.target = this.#api.url;
  }

  /** The connections of workers break first, as if it was killed. */
  async stopApi(): Promise<void> {
    const api = this.#api;
    this.#api = null;
    this.proxy.target = "http://127.0.0.1:1";
    this.proxy.cut();
    await api?.stop();
  }

  /** Resolves when the worker is registered. Stopped with the rig. */
  async worker(
    options: {
      readonly slots?: number;
      readonly url?: string;
      readonly ca?: string;
      readonly queues?: readonly string[];
    } = {},
  ): Promise<StartedWorker & { readonly home: string }> {
    const { ca, queues = ["default"], slots = 4, url = this.proxy.url } = options;
    const home = await mkdtemp(join(tmpdir(), "tradewind-worker-"));
    const { redisUrl, workerToken: token } = this;
    const settings = this.#settings;
    const worker = await startTestWorker(home, { url, token, ca, redisUrl, queues, slots, settings });
    this.#undo.push(async () => {
      await worker.stop();
      await rm(home, { recursive: true, force: true });
    });
    return { home, ...worker };
  }

  /** A request to the API, not through the proxy. */
  fetch(path: string, init: RequestInit = {}, token = this.adminToken): Promise<Response> {
    return fetch(`${this.apiUrl}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, ...init.headers },
    });
  }

  /** The lines of a task's log, as the API shows them. */
  async logLines(dagId: string, run: string, task: string, tryNumber = 1): Promise<string[]> {
    const path = `/api/v2/dags/${dagId}/dagRuns/${run}/taskInstances/${task}/logs/${tryNumber}`;
    const lines: string[] = [];
    for (let token: string | null = ""; token !== null; ) {
      const response = await this.fetch(`${path}${token && `?token=${token}`}`);
      // The task has not started.
      if (response.status === 404) return [];
      const body = (await response.json()) as {
        content: { event: string }[];
        continuation_token: string | null;
      };
      lines.push(...body.content.map(({ event }) => event));
      if (body.continuation_token === token) break;
      token = body.continuation_token;
      if (body.content.length === 0) break;
    }
    return lines;
  }

  async close(): Promise<void> {
    this.proxy.fault = () => null;
    if (this.#api === null) await this.startApi();
    await Promise.all(this.#undo.map((undo) => undo()));
    await this.#api?.stop();
  }
}

const rigs: WorkerRig[] = [];

afterFile(async () => {
  await Promise.all(rigs.splice(0).map((rig) => rig.close()));
});

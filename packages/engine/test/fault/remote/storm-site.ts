/**
 * The installation of the storm of remote execution: schedulers with the queue executor, API servers and workers, each a
 * process, on a PostgreSQL and a Redis of their own. Each worker reaches the API through a proxy, which also balances.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { createToken } from "../../../src/store/access/tokens.ts";
import { freePort } from "../../support/free-port.ts";
import { type HttpProxy, httpProxy } from "../../support/http-proxy.ts";
import { type PrivatePostgres, privatePostgres } from "../../support/private-postgres.ts";
import { redisServer, type TestRedis } from "../../support/redis-server.ts";
import { type ApiPlace, ApiProcess } from "../api-process.ts";
import type { ComponentProcess } from "../component-process.ts";
import { FaultInstallation } from "../installation.ts";
import { type SchedulerPlace, SchedulerProcess } from "../scheduler-process.ts";
import { type WorkerPlace, WorkerProcess } from "../worker-process.ts";

export interface StormSizes {
  readonly schedulers: number;
  readonly apis: number;
  readonly workers: number;
  readonly slots: number;
  /** Milliseconds: time to live, renewal, margin. The defaults if absent. */
  readonly schedulerLease?: readonly [number, number, number];
  readonly workerLeaseMs?: number;
}

/** A component that is started again after its death. */
export interface Member<P extends ComponentProcess = ComponentProcess> {
  process: P;
  start(): Promise<P>;
}

export interface SchedulerMember extends Member {
  /** Between the scheduler and Redis. */
  readonly redis: HttpProxy;
}

export interface WorkerMember extends Member {
  /** Between the worker and the API servers. */
  readonly proxy: HttpProxy;
}

export interface ApiMember extends Member {
  readonly url: string;
  /** The proxies of the workers choose this server for new connections. */
  isChosen: boolean;
}

export class StormSite {
  readonly installation: FaultInstallation;
  readonly postgres: PrivatePostgres;
  readonly redis: TestRedis;
  readonly schedulers: SchedulerMember[] = [];
  readonly workers: WorkerMember[] = [];
  readonly apis: ApiMember[] = [];
  readonly places: (SchedulerPlace | WorkerPlace | ApiPlace)[] = [];
  readonly #secretKey = randomBytes(32).toString("base64url");
  #next = 0;

  static async open(sizes: StormSizes): Promise<StormSite> {
    const [postgres, redis] = await Promise.all([privatePostgres(), redisServer()]);
    const site = new StormSite(postgres, redis, await FaultInstallation.open(postgres.url));
    await Promise.all(Array.from({ length: sizes.apis }, () => site.#addApi(sizes)));
    await Promise.all([
      ...Array.from({ length: sizes.schedulers }, (_, n) => site.#addScheduler(n, sizes)),
      ...Array.from({ length: sizes.workers }, (_, n) => site.#addWorker(n, sizes)),
    ]);
    return site;
  }

  private constructor(postgres: PrivatePostgres, redis: TestRedis, installation: FaultInstallation) {
    this.postgres = postgres;
    this.redis = redis;
    this.installation = installation;
  }

  get redisUrl(): string {
    return `redis://127.0.0.1:${this.redis.port}`;
  }

  async #addApi({ workerLeaseMs }: StormSizes): Promise<void> {
    const port = await freePort();
    // They share a folder of logs.
    const place: ApiPlace = {
      ...{ home: join(this.installation.root, "api"), databaseUrl: this.installation.url },
      ...{ ledger: this.installation.ledger.path, port, ...(workerLeaseMs && { workerLeaseMs }) },
      environment: { TRADEWIND_SECRET_KEY: this.#secretKey },
    };
    const member = await this.#member(place, () => new ApiProcess(place));
    this.apis.push(Object.assign(member, { url: `http://127.0.0.1:${port}`, isChosen: true }));
  }

  async #addScheduler(n: number, { schedulerLease: lease }: StormSizes): Promise<void> {
    const redis = await httpProxy(this.redisUrl);
    const environment = {
      TRADEWIND_SECRET_KEY: this.#secretKey,
      TRADEWIND_EXECUTOR: "queue",
      REDIS_URL: redis.url.replace("http:", "redis:"),
    };
    const place = this.installation.place(`scheduler-${n}`, { ...(lease && { lease }), environment });
    const member = await this.#member(place, () => new SchedulerProcess(place));
    this.schedulers[n] = Object.assign(member, { redis });
  }

  async #addWorker(n: number, { slots }: StormSizes): Promise<void> {
    const token = `tw_${randomBytes(24).toString("base64url")}`;
    await createToken(this.installation.db, { name: `worker-${n}`, token, role: "worker", expiresAt: null });
    const proxy = await httpProxy(() => this.#nextApi());
    const place: WorkerPlace = {
      ...{ home: join(this.installation.root, `worker-${n}`), ledger: this.installation.ledger.path },
      ...{ url: proxy.url, token, redisUrl: this.redisUrl, slots },
      environment: { TRADEWIND_DRAIN: "5s", TRADEWIND_STOP_GRACE_MS: "1000" },
    };
    const member = await this.#member(place, () => new WorkerProcess(place));
    this.workers[n] = Object.assign(member, { proxy });
  }

  #nextApi(): string {
    const chosen = this.apis.filter(({ isChosen }) => isChosen);
    return chosen[this.#next++ % chosen.length]!.url;
  }

  async #member<P extends ComponentProcess>(
    place: SchedulerPlace | WorkerPlace | ApiPlace,
    make: () => P,
  ): Promise<Member<P>> {
    this.places.push(place);
    const start = () => this.installation.comeUp(make);
    return { process: await start(), start };
  }
}

/**
 * The faults of the storm, from a seeded deck in three lanes at once: schedulers; workers and their network; what all of
 * them share. One scheduler, one worker and one API server are healthy at any moment, so that work can go on.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { queueKey } from "../../../src/execute/queue/queue-connection.ts";
import { type Random, randomOf } from "../../reference/random-dag.ts";
import type { LedgerLine } from "../ledger.ts";
import { isLong, LONG_MS } from "./storm-dag.ts";
import type { Member, SchedulerMember, StormSite, WorkerMember } from "./storm-site.ts";

/** An attempt that was running on a worker when its scheduler died, paused or stopped. */
export interface WatchedAttempt {
  readonly id: string;
  readonly worker: number;
  readonly workerJob: number;
  readonly how: string;
  readonly at: number;
}

/** A time in which the attempts of a worker may end otherwise. */
export interface Trouble {
  /** Its pid. */
  readonly worker: number;
  readonly from: number;
  to: number;
}

const PATIENCE_MS = 120_000;

/** By the clock of the ledger. */
export function ledgerNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export class StormDeck {
  readonly counts = {
    schedulersKilled: 0,
    schedulersPaused: 0,
    schedulersStopped: 0,
    killedBeforePublish: 0,
    workersKilled: 0,
    workersPaused: 0,
    workersCut: 0,
    workersStopped: 0,
    apisKilled: 0,
    apisPaused: 0,
    redisFlushed: 0,
    redisEmptied: 0,
    redisKilled: 0,
    redisPaused: 0,
    postgresKilled: 0,
    postgresPaused: 0,
    duplicated: 0,
  };
  /** What the faults hit. */
  readonly hits = { messagesUnsent: 0, messagesFlushed: 0, messagesDuplicated: 0, attemptsKilled: 0 };
  readonly watched: WatchedAttempt[] = [];
  readonly troubles: Trouble[] = [];
  readonly #site: StormSite;
  readonly #random: Random;

  constructor(site: StormSite, seed: number) {
    this.#site = site;
    this.#random = randomOf(seed);
  }

  /** Deals each fault once. */
  async deal(): Promise<void> {
    const lane = async (...faults: (() => Promise<void>)[]) => {
      for (const fault of this.#random.shuffled(faults)) await fault();
    };
    await Promise.all([
      lane(
        () => this.#killScheduler(),
        () => this.#killBeforePublish(),
        () => this.#pauseScheduler(),
        () => this.#stopScheduler(),
      ),
      lane(
        () => this.#killWorker(),
        () => this.#pauseWorker(),
        () => this.#cutWorker(),
        () => this.#stopWorker(),
      ),
      lane(
        () => this.#killApi(),
        () => this.#pauseApi(),
        () => this.#flushRedis(),
        () => this.#killRedis("empty"),
        () => this.#killRedis("as it was"),
        () => this.#pauseRedis(),
        () => this.#killPostgres(),
        () => this.#pausePostgres(),
        () => this.#duplicate(),
      ),
    ]);
  }

  async #killScheduler(): Promise<void> {
    const member = await this.#busyScheduler();
    const job = await this.#jobOf(member);
    await member.process.kill();
    this.counts.schedulersKilled++;
    await this.#watch(job, "killed");
    await this.#restart(member);
  }

  /** Between the commit of assignments and their messages: Redis does not receive what this scheduler sends. */
  async #killBeforePublish(): Promise<void> {
    const { installation, redis, schedulers } = this.#site;
    const member = schedulers[0] as SchedulerMember;
    const sql = `SELECT a.id FROM assignment a JOIN dag_run r ON r.id = a.dag_run_id
                 WHERE r.owner_job = $1 AND a.worker_job IS NULL`;
    member.redis.set("hang");
    let unsent: { id: string }[] = [];
    let job = 0;
    await this.#until("an assignment without a message", async () => {
      job = await this.#jobOf(member);
      const stored = await installation.sql<{ id: string }>(sql, [job]);
      const sent = await Promise.all(stored.map(({ id }) => redis.client.zscore(QUEUE, id)));
      unsent = stored.filter((_, at) => sent[at] === null);
      return unsent.length > 0;
    });
    await member.process.kill();
    this.counts.killedBeforePublish++;
    this.hits.messagesUnsent += unsent.length;
    member.redis.set("cut");
    await this.#watch(job, "killed before it published");
    member.redis.set("pass");
    await this.#restart(member);
  }

  /** Longer than its lease. */
  async #pauseScheduler(): Promise<void> {
    const member = await this.#busyScheduler();
    const job = await this.#jobOf(member);
    member.process.pause();
    this.counts.schedulersPaused++;
    await this.#watch(job, "paused");
    await this.#isDead(job);
    member.process.resume();
    await this.#comesBack(member, job);
  }

  async #stopScheduler(): Promise<void> {
    const member = await this.#busyScheduler();
    await this.#watch(await this.#jobOf(member), "stopped");
    await member.process.terminate();
    this.counts.schedulersStopped++;
    await this.#restart(member);
  }

  async #killWorker(): Promise<void> {
    const member = await this.#busyWorker();
    this.#trouble(member.process.pid);
    await member.process.kill();
    this.counts.workersKilled++;
    const { ledger } = this.#site.installation;
    const { pid } = member.process;
    this.hits.attemptsKilled += ledger.underWay().filter(({ scheduler }) => scheduler === pid).length;
    await this.#restart(member);
  }

  async #pauseWorker(): Promise<void> {
    const member = await this.#busyWorker();
    member.process.pause();
    await this.#losesLease(member, () => member.process.resume());
    this.counts.workersPaused++;
  }

  /** The connections break, or are silent, for longer than the lease. */
  async #cutWorker(): Promise<void> {
    const member = await this.#busyWorker();
    const { faults } = member.proxy;
    member.proxy.set(this.#random.chance(0.5) ? "cut" : "hang");
    await this.#losesLease(member, () => member.proxy.set("pass"));
    if (member.proxy.faults > faults) this.counts.workersCut++;
  }

  async #stopWorker(): Promise<void> {
    const member = await this.#busyWorker();
    this.#trouble(member.process.pid);
    await member.process.terminate();
    this.counts.workersStopped++;
    await this.#restart(member);
  }

  async #killApi(): Promise<void> {
    const api = this.#random.one(this.#site.apis);
    await this.#apart(async () => {
      await api.process.kill();
      this.counts.apisKilled++;
      api.isChosen = false;
      await this.#restart(api);
      api.isChosen = true;
    });
  }

  async #pauseApi(): Promise<void> {
    const api = this.#random.one(this.#site.apis);
    await this.#apart(async () => {
      api.process.pause();
      this.counts.apisPaused++;
      api.isChosen = false;
      await sleep(2_500);
      api.process.resume();
      api.isChosen = true;
    });
  }

  async #flushRedis(): Promise<void> {
    const { client } = this.#site.redis;
    await this.#until("a message in Redis", async () => (await this.#messages()) > 0);
    this.hits.messagesFlushed += await this.#messages();
    await client.flushall();
    this.counts.redisFlushed++;
    await sleep(500);
  }

  /** "empty": without what it had stored. */
  async #killRedis(how: "empty" | "as it was"): Promise<void> {
    const { redis } = this.#site;
    const lost = await this.#messages();
    await redis.down();
    await sleep(this.#random.below(800));
    await redis.up(how);
    if (how === "empty") {
      this.counts.redisEmptied++;
      this.hits.messagesFlushed += lost;
    } else this.counts.redisKilled++;
    await sleep(500);
  }

  async #pauseRedis(): Promise<void> {
    const { redis } = this.#site;
    redis.pause();
    this.counts.redisPaused++;
    await sleep(1_500);
    redis.resume();
  }

  async #killPostgres(): Promise<void> {
    const { postgres } = this.#site;
    await this.#apart(async () => {
      await postgres.crash("kill");
      this.counts.postgresKilled++;
      await sleep(this.#random.below(500));
      await postgres.resume();
    });
  }

  async #pausePostgres(): Promise<void> {
    await this.#apart(async () => {
      const resume = this.#site.postgres.pause();
      this.counts.postgresPaused++;
      await sleep(1_500);
      resume();
    });
  }

  /** Messages of attempts that run, or have ended, are sent again, and workers receive them. */
  async #duplicate(): Promise<void> {
    const { installation, redis } = this.#site;
    const running = "SELECT id FROM assignment WHERE worker_job IS NOT NULL LIMIT 10";
    let claimed: { id: string }[] = [];
    await this.#until("running attempts", async () => {
      claimed = await installation.sql<{ id: string }>(running);
      return claimed.length > 0;
    });
    const ended = installation.ledger.lines().filter(({ event }) => event === "end");
    const ids = [...claimed.map(({ id }) => id), ...ended.slice(-10).map(({ attempt }) => attempt)];
    await redis.client.zadd(QUEUE, ...ids.flatMap((id) => [0, id]));
    await this.#until("workers receive the duplicates", async () =>
      (await redis.client.zmscore(QUEUE, ids)).every((score) => score === null),
    );
    this.counts.duplicated++;
    this.hits.messagesDuplicated += ids.length;
  }

  /** The attempts of its runs that workers are running. */
  async #watch(job: number, how: string): Promise<void> {
    const at = ledgerNow();
    const { installation } = this.#site;
    const sql = `SELECT a.id, j.pid AS worker, j.id AS "workerJob" FROM assignment a
                 JOIN dag_run r ON r.id = a.dag_run_id JOIN job j ON j.id = a.worker_job
                 WHERE r.owner_job = $1 AND j.state = 'running'`;
    const claimed = await installation.sql<Pick<WatchedAttempt, "id" | "worker" | "workerJob">>(sql, [job]);
    const running = new Set(installation.ledger.underWay().map(({ attempt }) => attempt));
    this.watched.push(
      ...claimed.filter(({ id }) => running.has(id)).map((attempt) => ({ ...attempt, how, at })),
    );
  }

  async #losesLease(member: WorkerMember, release: () => void): Promise<void> {
    const trouble = this.#trouble(member.process.pid);
    const job = await this.#jobOf(member);
    await this.#isDead(job);
    release();
    await this.#comesBack(member, job);
    trouble.to = ledgerNow();
  }

  #trouble(worker: number): Trouble {
    const trouble = { worker, from: ledgerNow(), to: Number.POSITIVE_INFINITY };
    this.troubles.push(trouble);
    return trouble;
  }

  /** All workers have time to recover afterwards. */
  async #apart(fault: () => Promise<void>): Promise<void> {
    await fault();
    await sleep(1_000);
  }

  async #isDead(job: number): Promise<void> {
    const { installation } = this.#site;
    const sql = "SELECT 1 FROM job WHERE id = $1 AND state = 'dead'";
    await this.#until(
      `job ${job} is declared dead`,
      async () => (await installation.sql(sql, [job])).length > 0,
    );
  }

  async #comesBack(member: Member, job: number): Promise<void> {
    await this.#until(`job ${job} comes back`, async () => (await this.#jobOf(member)) !== job);
  }

  /** Other tests may use the machine. */
  #until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
    return this.#site.installation.until(what, holds, PATIENCE_MS);
  }

  async #restart(member: Member): Promise<void> {
    await sleep(this.#random.below(500));
    member.process = await member.start();
  }

  #jobOf({ process: component }: Member): Promise<number> {
    return this.#site.installation.jobOf(component);
  }

  /** One of the first two schedulers, with a long attempt that has just begun on the worker without faults. */
  async #busyScheduler(): Promise<Member> {
    const { installation, schedulers, workers } = this.#site;
    const sql = `SELECT j.pid FROM assignment a JOIN dag_run r ON r.id = a.dag_run_id JOIN job j ON j.id = r.owner_job
                 WHERE a.id = ANY($1::uuid[]) AND j.pid = ANY($2) LIMIT 1`;
    const pids = schedulers.slice(0, 2).map(({ process: { pid } }) => pid);
    let busy: Member | undefined;
    await this.#until("a scheduler with a long attempt", async () => {
      const healthy = this.#justBegun().filter(({ scheduler }) => scheduler === workers.at(-1)?.process.pid);
      const ids = healthy.map(({ attempt }) => attempt);
      const [row] = await installation.sql<{ pid: number }>(sql, [ids, pids]);
      busy = schedulers.find(({ process: { pid } }) => pid === row?.pid);
      return busy !== undefined;
    });
    return busy as Member;
  }

  /** One of the first two workers, with a long attempt that has just begun. */
  async #busyWorker(): Promise<WorkerMember> {
    const { workers } = this.#site;
    let busy: WorkerMember | undefined;
    await this.#until("a worker with a long attempt", () => {
      const pids = new Set(this.#justBegun().map(({ scheduler }) => scheduler));
      busy = workers.slice(0, 2).find(({ process: { pid } }) => pids.has(pid));
      return busy !== undefined;
    });
    return busy as WorkerMember;
  }

  #justBegun(): LedgerLine[] {
    const since = ledgerNow() - LONG_MS / 2;
    const { ledger } = this.#site.installation;
    return ledger.underWay().filter(({ at, run, task }) => at > since && isLong(run, task));
  }

  /** How many messages Redis has. */
  #messages(): Promise<number> {
    return this.#site.redis.client.zcard(QUEUE);
  }
}

const QUEUE = queueKey("default");

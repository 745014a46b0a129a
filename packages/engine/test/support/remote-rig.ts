/**
 * Schedulers with the queue executor, API servers and workers on one database and one Redis. Schedulers and API servers run
 * in this process, with connections of their own: a test lets one die, sleep or lose an answer at any statement.
 */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeAll } from "vitest";
import { queueKey } from "../../src/execute/queue/queue-connection.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import type { SchedulerJob } from "../../src/run/job/scheduler-job.ts";
import { createToken } from "../../src/store/access/tokens.ts";
import { adhoc, Database } from "../../src/store/database/database.ts";
import { afterFile } from "./after-file.ts";
import { DatabaseFaults } from "./faulty-database.ts";
import { redisServer, type TestRedis } from "./redis-server.ts";
import { type StartedWorker, startTestApi, startTestWorker } from "./remote-parts.ts";
import { SchedulerRig } from "./scheduler-rig.ts";
import { type Claim, ScriptedWorker } from "./scripted-worker.ts";

/** A scheduler whose process may die. */
export interface MortalScheduler {
  readonly job: SchedulerJob;
  readonly id: number;
  readonly faults: DatabaseFaults;
}

export interface MortalApi {
  readonly url: string;
  readonly faults: DatabaseFaults;
}

export interface AssignmentRow {
  readonly id: string;
  readonly kind: string;
  readonly task_id: string;
  readonly worker_job: number | null;
  readonly cancel: unknown;
}

/** An attempt that a worker has started. */
export interface RunningAttempt {
  readonly run: number;
  readonly id: string;
  readonly worker: ScriptedWorker;
  readonly claim: Claim;
}

type Files = Readonly<Record<string, string>>;

/** One DAG with one task. */
export const ONE: Files = {
  "remote.ts": `
    import { dag } from "tradewind";
    export const one = dag("one", { maxActiveRuns: 200 }, (d) => { d.task("work", () => 1); });
  `,
};

/** Renewed often: a test waits for the next heartbeat of a scheduler. */
const LEASE = { ttlMs: 3_000, renewMs: 300, marginMs: 800 };

export class RemoteRig {
  rig!: SchedulerRig;
  redis!: TestRedis;
  /** The API server that workers reach unless the test names another. */
  server!: MortalApi;
  readonly #undo: (() => Promise<unknown>)[] = [];
  #schedulers: MortalScheduler[] = [];
  #workers = 0;

  /**
   * Of a test file: opened before its tests. A scheduler ends with the test that has started it.
   *
   * @param files DAG files by name, or made from the folder of the rig.
   */
  static ofFile(files: Files | ((root: string) => Files) = ONE): RemoteRig {
    const remote = new RemoteRig();
    beforeAll(async () => {
      opened.push(remote);
      [remote.rig, remote.redis] = await Promise.all([SchedulerRig.open(), redisServer()]);
      await remote.rig.publish(typeof files === "function" ? files(remote.rig.root) : files);
      remote.server = await remote.api();
    });
    afterEach(() => remote.#endSchedulers());
    return remote;
  }

  private constructor() {}

  get redisUrl(): string {
    return `redis://127.0.0.1:${this.redis.port}`;
  }

  /** As in a process of its own. `notifies` false: it sends and receives no wake-ups. */
  async scheduler(
    settings: Record<string, string> = {},
    { notifies = true }: { readonly notifies?: boolean } = {},
  ): Promise<MortalScheduler> {
    const faults = new DatabaseFaults(Database.connect(this.rig.url));
    const queue = { TRADEWIND_EXECUTOR: "queue", REDIS_URL: this.redisUrl, ...settings };
    const options = { database: faults.database, shared: false, notifies, settings: queue, lease: LEASE };
    const job = await this.rig.scheduler(options);
    const [row] = await this.sql<{ id: number }>("SELECT max(id) AS id FROM job WHERE kind = 'scheduler'");
    const started = { job, id: row?.id ?? 0, faults };
    this.#schedulers.push(started);
    return started;
  }

  /** Its lease has expired: the others need not wait for that. */
  async isGone({ faults, id }: MortalScheduler): Promise<void> {
    faults.kill();
    await this.expire(id);
  }

  async #endSchedulers(): Promise<void> {
    const schedulers = this.#schedulers;
    this.#schedulers = [];
    for (const { faults } of schedulers) faults.kill();
    await Promise.all(schedulers.map(({ job }) => job.stop(0)));
    await this.sql(
      "UPDATE job SET state = 'dead', ended_at = now() WHERE kind = 'scheduler' AND state = 'running'",
    );
  }

  async expire(job: number): Promise<void> {
    await this.sql("UPDATE job SET lease_until = now() - interval '1 millisecond' WHERE id = $1", [job]);
  }

  async api({ leaseMs = 20_000, notifies = true } = {}): Promise<MortalApi> {
    const faults = new DatabaseFaults(Database.connect(this.rig.url));
    const { database } = faults;
    const wakeUps = new WakeUps(database, { enabled: notifies });
    const parts = { database, wakeUps, secretBox: this.rig.secretBox, workerLeaseMs: leaseMs };
    const { stop, url } = await startTestApi(join(this.rig.root, "api"), parts);
    this.#undo.push(async () => {
      faults.kill();
      await stop();
      await wakeUps.close();
      await database.close();
    });
    return { url, faults };
  }

  /** A worker in this process, with task processes of its own. */
  async worker({
    url = this.server.url,
    queues = ["default"],
    slots = 2,
  }: {
    readonly url?: string;
    readonly queues?: readonly string[];
    readonly slots?: number;
  } = {}): Promise<StartedWorker> {
    const token = `tw_${randomBytes(24).toString("base64url")}`;
    await createToken(this.rig.db, { name: token, token, role: "worker", expiresAt: null });
    const home = join(this.rig.root, `worker-${this.#workers++}`);
    const worker = await startTestWorker(home, { url, token, redisUrl: this.redisUrl, queues, slots });
    this.#undo.push(() => worker.stop());
    return worker;
  }

  scripted({
    api = this.server,
    queues,
  }: {
    readonly api?: { readonly url: string };
    readonly queues?: readonly string[];
  } = {}): Promise<ScriptedWorker> {
    return ScriptedWorker.register(this.rig.db, { url: api.url, ...(queues && { queues }) });
  }

  /** Starts a run, and a worker that has started its task. */
  async running(dagId = "one", task = "work"): Promise<RunningAttempt> {
    const run = await this.rig.trigger(dagId);
    const id = await this.assigned(run, task);
    const worker = await this.scripted();
    const claim = await worker.take(id);
    await worker.started(claim);
    await this.taskIs(run, task, "running");
    return { run, id, worker, claim };
  }

  sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.rig.db.rows<R>(adhoc(text), values);
  }

  assignments(): Promise<AssignmentRow[]> {
    return this.sql("SELECT id, kind, task_id, worker_job, cancel FROM assignment ORDER BY created_at, id");
  }

  /** Waits for the assignment of the current attempt of a task; returns its id. */
  async assigned(run: number, task: string): Promise<string> {
    const sql = `SELECT a.id FROM assignment a JOIN task_instance t ON t.attempt = a.id
                 WHERE t.dag_run_id = $1 AND t.task_id = $2`;
    await this.is(sql, [run, task]);
    return (await this.sql<{ id: string }>(sql, [run, task]))[0]!.id;
  }

  /** Waits until a task has another attempt than this one; returns its id. */
  async reassigned(run: number, task: string, former: string): Promise<string> {
    let next = former;
    const sql = "SELECT attempt FROM task_instance WHERE dag_run_id = $1 AND task_id = $2";
    await this.rig.until(async () => {
      const [row] = await this.sql<{ attempt: string | null }>(sql, [run, task]);
      next = row?.attempt ?? former;
      return next !== former && (await this.assignments()).some(({ id }) => id === next);
    }, `an attempt of ${task} after ${former}`);
    return next;
  }

  /** Waits until the query returns a row. */
  async is(sql: string, values: readonly unknown[] = []): Promise<void> {
    await this.rig.until(async () => (await this.sql(sql, values)).length > 0, `${sql} with ${values}`);
  }

  taskIs(run: number, task: string, state: string): Promise<void> {
    return this.is("SELECT 1 FROM task_instance WHERE dag_run_id = $1 AND task_id = $2 AND state = $3", [
      run,
      task,
      state,
    ]);
  }

  /** Attempts of a task that were followed by another, oldest first. */
  lost(run: number, task: string): Promise<{ attempt: string; try_number: number; reason: string }[]> {
    const sql = `SELECT attempt, try_number, reason FROM task_attempt
                 WHERE dag_run_id = $1 AND task_id = $2 ORDER BY ended_at`;
    return this.sql(sql, [run, task]);
  }

  /** Nothing is left of remote work, and no slot is occupied. */
  async isClean(): Promise<void> {
    await this.is(`SELECT 1 WHERE NOT EXISTS (SELECT FROM assignment) AND NOT EXISTS (SELECT FROM report)
                   AND NOT EXISTS (SELECT FROM pool WHERE occupied <> 0)`);
  }

  /** Waits until the message of the assignment is in Redis. */
  isSent(id: string, queue = "default"): Promise<void> {
    return this.rig.until(() => this.hasMessage(id, queue), `message ${id}`);
  }

  async hasMessage(id: string, queue = "default"): Promise<boolean> {
    return (await this.redis.client.zscore(queueKey(queue), id)) !== null;
  }

  async close(): Promise<void> {
    for (const undo of this.#undo.reverse()) await undo();
  }
}

const opened: RemoteRig[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((rig) => rig.close()));
});

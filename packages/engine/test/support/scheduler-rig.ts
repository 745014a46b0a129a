/** Schedulers with real task processes on a test database: DAGs are written as source text, published, run and inspected. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeaseTimes } from "../../src/job/lease.ts";
import { WakeUps } from "../../src/job/wake-up.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import { createScheduler } from "../../src/process/scheduler.ts";
import { createTriggerer } from "../../src/process/triggerer.ts";
import type { SchedulerJob } from "../../src/run/job/scheduler-job.ts";
import { SecretBox } from "../../src/secret/secret-box.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { createLogger, type Logger, silentLogger } from "../../src/service/logger.ts";
import { adhoc, type Connection, Database } from "../../src/store/database/database.ts";
import { cancelRun } from "../../src/store/edit/end-run.ts";
import { type MarkEdit, markTasks } from "../../src/store/edit/mark-tasks.ts";
import { type CreateRunInput, createRun } from "../../src/store/run/run-create.ts";
import { afterFile } from "./after-file.ts";
import { NEW_RUN } from "./new-run.ts";
import { publishFolder } from "./publish-folder.ts";
import { clearRun, type RunClear, selected } from "./run-edits.ts";
import { testDatabase } from "./test-database.ts";

export interface TaskRow {
  readonly task_id: string;
  readonly state: string;
  readonly try_number: number;
  readonly attempt: string | null;
  readonly reason: string | null;
  readonly pid: number | null;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
}

export interface RunRow {
  readonly id: number;
  readonly run_id: string;
  readonly state: string;
  readonly end_reason: string | null;
  readonly logical_date: Date | null;
}

export class SchedulerRig {
  readonly db: Database;
  readonly url: string;
  readonly root: string;
  /** A file for the notes of tasks. */
  readonly ledger: string;
  readonly secretBox: SecretBox;
  readonly wakeUps: WakeUps;
  readonly #schedulers: SchedulerJob[] = [];
  readonly #undo: (() => Promise<void>)[] = [];

  static async open(): Promise<SchedulerRig> {
    const { db, url } = await testDatabase();
    const root = await mkdtemp(join(tmpdir(), "tradewind-rig-"));
    await mkdir(join(root, "dags"));
    return new SchedulerRig(db, url, root);
  }

  private constructor(db: Database, url: string, root: string) {
    this.db = db;
    this.url = url;
    this.root = root;
    this.ledger = join(root, "ledger");
    this.secretBox = new SecretBox([Buffer.alloc(32, 7)]);
    this.wakeUps = new WakeUps(db);
    opened.push(this);
  }

  /** Publishes `dags/<name>` with this source; the text itself imports `{ dag, ... }` from "tradewind". */
  async publish(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(files)) await writeFile(join(this.root, "dags", name), text);
    await publishFolder(this.db, join(this.root, "dags"));
    this.wakeUps.send("dags");
  }

  /** `shared` false: as in another process, which with `notifies` false sends and receives no wake-ups. `url`: its own connection to the database. `settings`: environment variables. */
  async scheduler(
    options: {
      parallelism?: number;
      shared?: boolean;
      notifies?: boolean;
      logger?: Logger;
      url?: string;
      database?: Database;
      settings?: Record<string, string>;
      lease?: LeaseTimes;
      dags?: readonly string[];
      runs?: number;
    } = {},
  ): Promise<SchedulerJob> {
    const config = resolveConfig(
      { home: join(this.root, "home"), parallelism: options.parallelism ?? 4 },
      { TRADEWIND_STOP_GRACE_MS: "2000", ...options.settings },
    );
    const home = await openHome(config.home);
    const isOwn = options.shared === false || options.url !== undefined;
    const database = options.database ?? (isOwn ? Database.connect(options.url ?? this.url) : this.db);
    const wakeUps =
      options.shared === false ? new WakeUps(database, { enabled: options.notifies ?? true }) : this.wakeUps;
    const logger =
      options.logger ?? (process.env.TRADEWIND_TEST_LOG ? createLogger({ level: "debug" }) : silentLogger);
    const logs = new LogFolder(home.logs);
    const parts = { config, database, home, logger, logs, secretBox: this.secretBox, wakeUps };
    const { dags, lease, runs } = options;
    const scheduler = createScheduler({
      ...parts,
      ...(lease && { lease }),
      dags,
      runs,
    });
    await scheduler.start();
    this.#schedulers.push(scheduler);
    if (isOwn)
      this.#undo.push(async () => {
        if (wakeUps !== this.wakeUps) await wakeUps.close();
        await database.close();
      });
    return scheduler;
  }

  /** `shared` false: as in another process. Stopped with the rig. */
  async triggerer({ shared = true } = {}): Promise<void> {
    const config = resolveConfig({ home: join(this.root, "triggerer") }, {});
    const database = shared ? this.db : Database.connect(this.url);
    const wakeUps = shared ? this.wakeUps : new WakeUps(database);
    const home = await openHome(config.home);
    const logs = new LogFolder(home.logs);
    const parts = { config, database, home, logger: silentLogger, logs };
    const triggerer = createTriggerer({ ...parts, secretBox: this.secretBox, wakeUps });
    await triggerer.start();
    this.#undo.push(async () => {
      await triggerer.stop(0);
      if (shared) return;
      await wakeUps.close();
      await database.close();
    });
  }

  /** As a host of deadlines does after it has handed some over. */
  requestCallbacks(): void {
    for (const scheduler of this.#schedulers) scheduler.requestCallbacks();
  }

  async trigger(dagId: string, input: Partial<CreateRunInput> = {}): Promise<number> {
    const result = await this.db.transaction((tx) =>
      createRun(tx, {
        dagId,
        ...NEW_RUN,
        ...input,
      }),
    );
    if (result.kind !== "created") throw new Error(`no run of ${dagId}: ${result.kind}`);
    this.wakeUps.send("runs");
    return result.dagRunId;
  }

  /** An edit of a run, with the wake-up that the API sends. */
  async edit<T>(id: number, change: (tx: Connection) => Promise<T>): Promise<T> {
    const result = await this.db.transaction(change);
    this.wakeUps.send(`run:${id}`);
    return result;
  }

  cancel(id: number) {
    return this.edit(id, (tx) => cancelRun(tx, id, "cancelled by a test"));
  }

  /** Returns the ids of the cleared tasks. */
  async clear(id: number, edit: RunClear = {}): Promise<string[]> {
    const result = await this.edit(id, (tx) => clearRun(tx, id, edit));
    return result.kind === "cleared" ? result.affected.map(({ taskId }) => taskId).sort() : [];
  }

  mark(id: number, taskId: string, state: MarkEdit["state"]) {
    const runs = [{ dagRunId: id, tasks: selected([taskId]) }];
    return this.edit(id, (tx) => markTasks(tx, { runs, state, dryRun: false }));
  }

  async run(id: number): Promise<RunRow> {
    const row = await this.db.one<RunRow>(adhoc("SELECT * FROM dag_run WHERE id = $1"), [id]);
    if (!row) throw new Error(`no run ${id}`);
    return row;
  }

  async tasks(id: number): Promise<Record<string, TaskRow>> {
    const rows = await this.db.rows<TaskRow>(adhoc("SELECT * FROM task_instance WHERE dag_run_id = $1"), [
      id,
    ]);
    return Object.fromEntries(rows.map((row) => [row.task_id, row]));
  }

  async states(id: number): Promise<Record<string, string>> {
    return Object.fromEntries(Object.entries(await this.tasks(id)).map(([task, row]) => [task, row.state]));
  }

  async output(id: number, task: string): Promise<unknown> {
    const sql = "SELECT value FROM xcom WHERE dag_run_id = $1 AND task_id = $2 AND key = 'return_value'";
    return (await this.db.one<{ value: unknown }>(adhoc(sql), [id, task]))?.value;
  }

  /** Waits for the end of the run; returns its state. */
  async ended(id: number, withinMs = 30_000): Promise<string> {
    await this.until(
      async () => !["queued", "running"].includes((await this.run(id)).state),
      `end of run ${id}`,
      withinMs,
    );
    return (await this.run(id)).state;
  }

  /** Polls for an external condition that has no event. */
  async until(holds: () => Promise<boolean>, what: string, withinMs = 30_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!(await holds())) {
      if (performance.now() > deadline)
        throw new Error(`timed out after ${withinMs} ms waiting for: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Whether the stored free slots equal those computed from task states: otherwise slots leaked. */
  async poolsAreExact(): Promise<boolean> {
    const sql = `SELECT p.name FROM pool p WHERE p.occupied <> (
        SELECT coalesce(sum(CASE WHEN t.pool = p.name THEN t.pool_slots ELSE 1 END), 0) FROM task_instance t
        WHERE (t.pool = p.name OR p.name = ANY(string_to_array(t.limit_key, E'\\n'))) AND t.state IN ('queued', 'running', 'restarting'))`;
    return (await this.db.rows(adhoc(sql))).length === 0;
  }

  async close(): Promise<void> {
    await Promise.all(this.#schedulers.map((scheduler) => scheduler.stop(0)));
    for (const undo of this.#undo) await undo();
    await this.wakeUps.close();
    await rm(this.root, { recursive: true, force: true });
  }
}

const opened: SchedulerRig[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((rig) => rig.close()));
});

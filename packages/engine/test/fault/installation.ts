/** What the fault tests work on: a server of their own, scripted DAGs published to it, and schedulers as processes. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll } from "vitest";
import { DagProcessor } from "../../src/bundle/dag-processor.ts";
import { planNext } from "../../src/schedule/planner.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { adhoc, CommitUnknownError, Database, isTransient } from "../../src/store/database.ts";
import { createPool } from "../../src/store/pools.ts";
import { runEdits } from "../../src/store/run-edit.ts";
import { Ledger } from "./ledger.ts";
import { type SchedulerPlace, SchedulerProcess } from "./scheduler-process.ts";
import type { ScriptedDag } from "./scripted-dag.ts";

export class FaultInstallation {
  readonly db: Database;
  readonly url: string;
  readonly root: string;
  readonly ledger: Ledger;
  readonly schedulers = new Set<SchedulerProcess>();
  #isClosed = false;

  static async open(url: string): Promise<FaultInstallation> {
    return new FaultInstallation(url, await mkdtemp(join(tmpdir(), "tradewind-fault-")));
  }

  private constructor(url: string, root: string) {
    this.db = Database.connect(url, { max: 6, applicationName: "fault test" });
    this.url = url;
    this.root = root;
    this.ledger = new Ledger(join(root, "ledger.jsonl"));
    opened.push(this);
  }

  /** Eight DAGs to a file: task processes then meet several bundles, and come back to each. */
  async publish(dags: readonly ScriptedDag[]): Promise<void> {
    const folder = join(this.root, "dags");
    await mkdir(folder, { recursive: true });
    const module = JSON.stringify(join(import.meta.dirname, "scripted-dag.ts"));
    for (let at = 0; at < dags.length; at += 8) {
      const exports = dags.slice(at, at + 8).map((script, n) => {
        return `export const dag_${n} = scriptedDag(${JSON.stringify(script)});`;
      });
      // A file counts as a DAG file only if it names the SDK itself.
      const imports = ['import type {} from "tradewind";', `import { scriptedDag } from ${module};`];
      await writeFile(join(folder, `dags_${at}.ts`), [...imports, ...exports, ""].join("\n"));
    }
    const processor = new DagProcessor({
      database: this.db,
      folder,
      logger: silentLogger,
      plan: planNext,
      isPausedAtCreation: false,
      children: 1,
    });
    const report = await processor.runOnce();
    await processor.stop();
    if (report.failed > 0) throw new Error(JSON.stringify(await this.sql("SELECT * FROM import_error")));
  }

  async addPools(pools: Readonly<Record<string, number>>): Promise<void> {
    for (const [name, slots] of Object.entries(pools))
      await createPool(this.db, name, { slots, description: null, includeDeferred: false });
  }

  place(name: string, settings: Partial<SchedulerPlace> = {}): SchedulerPlace {
    const home = join(this.root, name);
    return { home, databaseUrl: this.url, ledger: this.ledger.path, parallelism: 3, ...settings };
  }

  /** A scheduler cannot come up while the database is away: then another is started, as a supervisor would. */
  async start(place: SchedulerPlace): Promise<SchedulerProcess> {
    while (!this.#isClosed) {
      const scheduler = new SchedulerProcess(place);
      this.schedulers.add(scheduler);
      if ((await scheduler.ready) === "up") return scheduler;
      await sleep(200);
    }
    throw new Error("the test is over");
  }

  /** Creates a run, once, however often the database goes away meanwhile. */
  async trigger(dagId: string, runId: string): Promise<void> {
    const { kind } = await this.persist(() =>
      this.db.transaction((tx) => runEdits.createRun(tx, { ...RUN, dagId, runId })),
    );
    if (kind !== "created" && kind !== "conflict") throw new Error(`no run of ${dagId}: ${kind}`);
    await this.sql("SELECT pg_notify('tradewind', 'runs test')");
  }

  sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.persist(() => this.db.rows<R>(adhoc(text), values));
  }

  /** Again while the database is away; only for what may be done twice. */
  async persist<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (!isTransient(error) && !(error instanceof CommitUnknownError)) throw error;
        await sleep(50);
      }
    }
  }

  /** Under which id the scheduler is known now; a new one after it lost its lease. */
  async jobOf(scheduler: SchedulerProcess): Promise<number> {
    const [job] = await this.sql<{ id: number }>("SELECT max(id) AS id FROM job WHERE pid = $1", [
      scheduler.pid,
    ]);
    return job?.id ?? 0;
  }

  async runsOf(scheduler: SchedulerProcess): Promise<number[]> {
    const rows = await this.sql<{ id: number }>(
      "SELECT id FROM dag_run WHERE state = 'running' AND owner_job = $1",
      [await this.jobOf(scheduler)],
    );
    return rows.map((row) => row.id);
  }

  async until(what: string, holds: () => Promise<boolean> | boolean, withinMs = 30_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms in vain for: ${what}`);
      await sleep(20);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.schedulers].map((scheduler) => scheduler.discard()));
    await this.db.close();
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

const RUN = {
  logicalDate: null,
  interval: null,
  runAfter: null,
  conf: {},
  note: null,
  triggeredBy: "cli",
  triggeringUser: null,
} as const;

const opened: FaultInstallation[] = [];

afterAll(async () => {
  await Promise.all(opened.splice(0).map((installation) => installation.close()));
});

/** The installation of the fault tests: a separate server, published DAGs, schedulers and triggerers as processes. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc, CommitUnknownError, Database, isTransient } from "../../src/store/database/database.ts";
import { createPool } from "../../src/store/pool/pools.ts";
import { createRun } from "../../src/store/run/run-create.ts";
import { afterFile } from "../support/after-file.ts";
import { NEW_RUN } from "../support/new-run.ts";
import { publishFolder } from "../support/publish-folder.ts";
import type { ComponentProcess } from "./component-process.ts";
import { Ledger } from "./ledger.ts";
import type { MappedDag } from "./mapped-dag.ts";
import { type SchedulerPlace, SchedulerProcess } from "./scheduler-process.ts";
import type { ScriptedDag } from "./scripted-dag.ts";
import { type TriggererPlace, TriggererProcess } from "./triggerer-process.ts";

export class FaultInstallation {
  readonly db: Database;
  readonly url: string;
  readonly root: string;
  readonly ledger: Ledger;
  readonly processes = new Set<ComponentProcess>();
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

  /** Eight DAGs per file: task processes then switch between several bundles. */
  async publish(dags: readonly (ScriptedDag | MappedDag)[]): Promise<void> {
    const module = (name: string) => JSON.stringify(join(import.meta.dirname, name));
    const imports = [
      `import { scriptedDag } from ${module("scripted-dag.ts")};`,
      `import { mappedDag } from ${module("mapped-dag.ts")};`,
    ];
    const files: Record<string, string> = {};
    for (let at = 0; at < dags.length; at += 8) {
      const exports = dags.slice(at, at + 8).map((script, n) => {
        const make = "steps" in script ? "mappedDag" : "scriptedDag";
        return `export const dag_${n} = ${make}(${JSON.stringify(script)});`;
      });
      files[`dags_${at}.ts`] = [...imports, ...exports].join("\n");
    }
    await this.publishFiles(files);
  }

  /** DAG files by name. */
  async publishFiles(files: Readonly<Record<string, string>>): Promise<void> {
    const folder = join(this.root, "dags");
    await mkdir(folder, { recursive: true });
    // A file counts as a DAG file only if it imports the SDK itself.
    for (const [name, text] of Object.entries(files))
      await writeFile(join(folder, name), `import type {} from "tradewind";\n${text}\n`);
    await publishFolder(this.db, folder);
  }

  async addPools(pools: Readonly<Record<string, number>>, includeDeferred = false): Promise<void> {
    for (const [name, slots] of Object.entries(pools))
      await createPool(this.db, name, { slots, description: null, includeDeferred });
  }

  place(name: string, settings: Partial<SchedulerPlace> = {}): SchedulerPlace {
    const home = join(this.root, name);
    return { home, databaseUrl: this.url, ledger: this.ledger.path, parallelism: 3, ...settings };
  }

  triggererPlace(name: string, settings: Partial<TriggererPlace> = {}): TriggererPlace {
    const home = join(this.root, name);
    return { home, databaseUrl: this.url, ledger: this.ledger.path, notifies: true, ...settings };
  }

  start(place: SchedulerPlace): Promise<SchedulerProcess> {
    return this.comeUp(() => new SchedulerProcess(place));
  }

  startTriggerer(place: TriggererPlace): Promise<TriggererProcess> {
    return this.comeUp(() => new TriggererProcess(place));
  }

  /** No process can start while the database is down: then another one is started, as by a supervisor. */
  async comeUp<P extends ComponentProcess>(make: () => P): Promise<P> {
    while (!this.#isClosed) {
      const component = make();
      this.processes.add(component);
      if ((await component.ready) === "up") return component;
      await sleep(200);
    }
    throw new Error("the test has ended");
  }

  /** Processes that ended unexpectedly after they were up. */
  crashes(): string[] {
    return [...this.processes].map(({ crash }) => crash).filter((crash) => crash !== null);
  }

  /** Creates a run once, despite failures of the database in between. */
  async trigger(dagId: string, runId: string, conf: Readonly<Record<string, string>> = {}): Promise<void> {
    const { kind } = await this.persist(() =>
      this.db.transaction((tx) => createRun(tx, { ...NEW_RUN, conf, dagId, runId })),
    );
    if (kind !== "created" && kind !== "conflict") throw new Error(`no run of ${dagId}: ${kind}`);
    await this.sql("SELECT pg_notify('tradewind', 'runs test')");
  }

  sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.persist(() => this.db.rows<R>(adhoc(text), values));
  }

  /** Retries while the database is down; only for idempotent work. */
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

  /** The current job id of the process; it changes after a lost lease. */
  async jobOf({ pid }: ComponentProcess): Promise<number> {
    const [job] = await this.sql<{ id: number }>("SELECT max(id) AS id FROM job WHERE pid = $1", [pid]);
    return job?.id ?? 0;
  }

  async until(what: string, holds: () => Promise<boolean> | boolean, withinMs = 30_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!(await holds())) {
      if (performance.now() > deadline)
        throw new Error(`timed out after ${withinMs} ms waiting for: ${what}`);
      await sleep(20);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.processes].map((component) => component.discard()));
    await this.db.close();
    await rm(this.root, { recursive: true, force: true, maxRetries: 5 });
  }
}

const opened: FaultInstallation[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((installation) => installation.close()));
});

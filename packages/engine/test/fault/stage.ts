/** A small installation for one race at a time: a DAG with a gated task and one after it, schedulers with short leases. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFailed } from "vitest";
import { adhoc } from "../../src/store/database/database.ts";
import { type PgProxy, pgProxy } from "../support/pg-proxy.ts";
import { testDatabase } from "../support/test-database.ts";
import { readLog } from "./component-process.ts";
import { FaultInstallation } from "./installation.ts";
import type { LedgerLine } from "./ledger.ts";
import type { SchedulerPlace, SchedulerProcess } from "./scheduler-process.ts";
import { PLAIN_TASK, type ScriptedTask } from "./scripted-dag.ts";
import { stuckReport } from "./stuck-report.ts";

export interface TaskRow {
  readonly state: string;
  readonly try_number: number;
  readonly attempt: string | null;
  readonly infra_losses: number;
}

/** Milliseconds: time to live, renewal, margin. */
const LEASE = [1_500, 400, 400] as const;

export class Stage {
  readonly installation: FaultInstallation;
  readonly proxy: PgProxy;
  /** All equal; one is enough for most races. */
  readonly dags = ["race", "race_2", "race_3", "race_4", "race_5", "race_6"];
  readonly #gate: string;

  static async open(): Promise<Stage> {
    const { url } = await testDatabase();
    const installation = await FaultInstallation.open(url);
    const stage = new Stage(installation, await pgProxy(url));
    await installation.publish(stage.dags.map((id) => ({ id, tasks: stage.#tasks() })));
    return stage;
  }

  private constructor(installation: FaultInstallation, proxy: PgProxy) {
    this.installation = installation;
    this.proxy = proxy;
    this.#gate = join(installation.root, "gate");
  }

  #tasks(): ScriptedTask[] {
    return [
      { ...PLAIN_TASK, id: "gated", gate: this.#gate },
      { ...PLAIN_TASK, id: "after", after: ["gated"] },
    ];
  }

  place(name: string, settings: Partial<SchedulerPlace> = {}): SchedulerPlace {
    return this.installation.place(name, { lease: LEASE, ...settings });
  }

  start(place: SchedulerPlace): Promise<SchedulerProcess> {
    return this.installation.start(place);
  }

  /** Returns the id of the run. */
  async trigger(): Promise<number> {
    await this.installation.trigger("race", "run");
    const [run] = await this.installation.sql<{ id: number }>("SELECT id FROM dag_run");
    return run?.id ?? 0;
  }

  /** For all attempts, or for those of one scheduler. */
  openGate(of?: SchedulerProcess): void {
    writeFileSync(of ? `${this.#gate}.${of.pid}` : this.#gate, "");
  }

  async task(id: string): Promise<TaskRow> {
    const rows = await this.installation.sql<TaskRow>("SELECT * FROM task_instance WHERE task_id = $1", [id]);
    return rows[0] ?? { state: "absent", try_number: 0, attempt: null, infra_losses: 0 };
  }

  states(): Promise<{ task_id: string; state: string }[]> {
    return this.installation.sql("SELECT task_id, state FROM task_instance ORDER BY task_id DESC");
  }

  /** Attempts of the gated task that were followed by another one, oldest first. */
  history(): Promise<{ attempt: string; try_number: number; executor_job: number }[]> {
    return this.installation.sql(
      "SELECT attempt, try_number, executor_job FROM task_attempt WHERE task_id = 'gated' ORDER BY ended_at",
    );
  }

  /** Starts of the gated task, in order. */
  starts(): LedgerLine[] {
    return this.installation.ledger.lines().filter((line) => line.task === "gated" && line.event === "start");
  }

  async started(count: number): Promise<LedgerLine> {
    await this.until(`start ${count}`, () => this.starts().length >= count);
    return this.starts()[count - 1] as LedgerLine;
  }

  async isRunning(attempt: string): Promise<void> {
    await this.until(`${attempt} is running`, async () => {
      const row = await this.task("gated");
      return row.state === "running" && row.attempt === attempt;
    });
  }

  async runEnds(): Promise<string> {
    const state = async () =>
      (await this.installation.sql<{ state: string }>("SELECT state FROM dag_run"))[0]?.state;
    await this.until("the run ends", async () => ["success", "failed"].includes((await state()) ?? ""));
    return (await state()) ?? "";
  }

  async logs(place: SchedulerPlace, start: string): Promise<void> {
    await this.until(`"${start}" in the log`, () =>
      readLog(place).some((line) => line.message.startsWith(start)),
    );
  }

  wasAborted(attempt: string): boolean {
    return this.installation.ledger
      .lines()
      .some((line) => line.attempt === attempt && line.event === "abort");
  }

  /** While `work` runs, bundles cannot be fetched, and processes that need one wait. */
  async withoutBundles<T>(work: () => Promise<T>): Promise<T> {
    return this.installation.db.transaction(async (tx) => {
      await tx.rows(adhoc("LOCK TABLE bundle IN ACCESS EXCLUSIVE MODE"));
      return work();
    });
  }

  /** Stops the server process of the connection that carries batches: they arrive when it resumes. */
  async holdBatches(): Promise<{ resume(): void }> {
    const sql = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'fault test'
                 AND query ~ '(UPDATE task_instance t SET|INSERT INTO signal)'`;
    const backends = await this.installation.sql<{ pid: number }>(sql);
    if (backends.length === 0) throw new Error("no connection has carried a batch yet");
    const signal = (name: "SIGSTOP" | "SIGCONT") => {
      for (const { pid } of backends) process.kill(pid, name);
    };
    signal("SIGSTOP");
    // A failed test must not leave the shared server with a stopped backend.
    onTestFailed(() => signal("SIGCONT"));
    return { resume: () => signal("SIGCONT") };
  }

  /** Waits for this many further heartbeats of a scheduler. */
  async heartbeats(scheduler: SchedulerProcess, count: number): Promise<void> {
    const seen = new Set<number>();
    const sql = "SELECT heartbeat_at FROM job WHERE pid = $1 ORDER BY id DESC LIMIT 1";
    await this.until(`${count} heartbeats`, async () => {
      const [row] = await this.installation.sql<{ heartbeat_at: Date }>(sql, [scheduler.pid]);
      seen.add(row?.heartbeat_at.getTime() ?? 0);
      return seen.size > count;
    });
  }

  /** Slots that are occupied although no task runs. */
  async leaks(): Promise<object[]> {
    return this.installation.sql("SELECT name, occupied FROM pool WHERE occupied <> 0");
  }

  async until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
    try {
      await this.installation.until(what, holds, 20_000);
    } catch (error) {
      const places = ["first", "second", "third"].map((name) => this.place(name));
      throw new Error(`${(error as Error).message}\n${await stuckReport(this.installation, places)}`);
    }
  }

  /** Stops the scheduler at each commit, before it knows of it, until `isReached`; then leaves it stopped. */
  async pauseAtCommit(scheduler: SchedulerProcess, isReached: () => Promise<boolean>): Promise<void> {
    let isPaused = false;
    this.proxy.set({
      kind: "drop-commit-answer",
      random: () => {
        scheduler.pause();
        isPaused = true;
        return 1;
      },
    });
    for (const deadline = performance.now() + 20_000; performance.now() < deadline; await sleep(5)) {
      if (!isPaused) continue;
      if (await isReached()) return;
      isPaused = false;
      scheduler.resume();
    }
    throw new Error("the scheduler never reached that point");
  }
}

/**
 * The faults of waits, dealt from a seeded deck in three lanes at once: schedulers, and a triggerer that joins and leaves;
 * triggerers with their runners; the database, the connections to it, and the ownership rows. At any moment at least one
 * scheduler and one triggerer are healthy, so that a process can take over.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomOf } from "../reference/random-dag.ts";
import type { PgProxy } from "../support/pg-proxy.ts";
import type { CrashablePostgres } from "../support/private-postgres.ts";
import type { ComponentProcess } from "./component-process.ts";
import type { FaultInstallation } from "./installation.ts";
import type { SchedulerPlace, SchedulerProcess } from "./scheduler-process.ts";
import type { TriggererPlace, TriggererProcess } from "./triggerer-process.ts";
import type { Gates, WaitingLoad } from "./waiting-load.ts";
import type { TakeoverWatch } from "./watches.ts";

export interface DeferralParts {
  readonly installation: FaultInstallation;
  readonly postgres: CrashablePostgres;
  /** The proxies between the database and the second scheduler, and the second triggerer. */
  readonly proxies: readonly PgProxy[];
  readonly runs: TakeoverWatch;
  readonly triggers: TakeoverWatch;
  readonly gates: Gates;
  readonly schedulers: readonly SchedulerPlace[];
  /** The second receives no wake-ups; the third joins and leaves. */
  readonly triggerers: readonly [TriggererPlace, TriggererPlace, TriggererPlace];
}

const PATIENCE_MS = 25_000;
/** A third death of a runner's process within a minute would blame an innocent trigger. */
const DEATHS_ALLOWED = 2;

export class DeferralDeck {
  readonly counts = {
    schedulersKilled: 0,
    schedulersPaused: 0,
    schedulersTerminated: 0,
    triggerersKilled: 0,
    triggerersPaused: 0,
    triggerersTerminated: 0,
    runnersKilled: 0,
    runnersPaused: 0,
    runnersHeldUp: 0,
    blocked: 0,
    seized: 0,
    crashed: 0,
    cut: 0,
    drops: 0,
  };
  /** Triggers that were reassigned from a triggerer that still ran them without knowing. */
  seizedTriggers = 0;
  readonly #parts: DeferralParts;
  readonly #random: Random;
  readonly #schedulers: SchedulerProcess[] = [];
  readonly #triggerers: TriggererProcess[] = [];
  /** Deaths of runners, by the process of the triggerer. */
  readonly #deaths = new Map<number, number>();

  constructor(parts: DeferralParts, seed: number) {
    this.#parts = parts;
    this.#random = randomOf(seed);
  }

  get total(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }

  async startAll(): Promise<void> {
    const { installation, schedulers, triggerers } = this.#parts;
    const [first, second] = triggerers;
    this.#schedulers.push(...(await Promise.all(schedulers.map((place) => installation.start(place)))));
    this.#triggerers.push(
      ...(await Promise.all([first, second].map((place) => installation.startTriggerer(place)))),
    );
  }

  /** Deals all faults `scale` times. Faults that may find no target repeat until `atLeast` of them have hit. */
  async deal(scale: number, load: WaitingLoad, atLeast: number): Promise<void> {
    const times = <T>(count: number, fault: T): T[] =>
      Array<T>(Math.max(1, Math.round(count * scale))).fill(fault);
    const lane = async (faults: readonly (() => Promise<void>)[]) => {
      for (const fault of this.#random.shuffled(faults)) await fault();
    };
    const either = () => this.#random.below(2);
    await Promise.all([
      lane([
        ...times(3, async () => this.#killScheduler(await this.#busyScheduler())),
        ...times(1, async () => this.#pauseScheduler(await this.#busyScheduler())),
        ...times(1, () => this.#terminateScheduler(either())),
        ...times(2, () => this.#visit()),
      ]),
      lane([
        ...times(6, () => this.#killTriggerer(either())),
        ...times(1, () => this.#pauseTriggerer(0)),
        ...times(1, () => this.#pauseTriggerer(1)),
        ...times(10, () => this.#killRunner(either())),
        ...times(1, () => this.#pauseRunner(either())),
        ...times(1, () => this.#holdUpRunner(either())),
      ]),
      lane([
        ...times(2, () => this.#crashDatabase()),
        ...times(18, () => this.#dropCommitAnswers(either())),
        ...times(12, () => this.#cut(either())),
        ...times(18, () => this.#seize(load)),
        ...times(3, () => this.#block(load)),
      ]),
    ]);
    for (let more = 0; this.total < atLeast && more < atLeast; more++)
      await (more % 2 === 0 ? this.#dropCommitAnswers(either()) : this.#seize(load));
  }

  /** The triggerer without wake-ups stops, and hands over. */
  async retire(): Promise<void> {
    const { triggers } = this.#parts;
    await this.#triggerer(1).terminate();
    await triggers.ownerFell(this.#triggerer(1), "SIGTERM");
  }

  async #killScheduler(at: number): Promise<void> {
    const scheduler = this.#schedulers[at] as SchedulerProcess;
    await scheduler.kill();
    this.counts.schedulersKilled++;
    await this.#parts.runs.ownerFell(scheduler, "kill -9");
    await sleep(this.#random.below(1_000));
    await this.#replaceScheduler(at);
    await sleep(1_000 + this.#random.below(1_500));
  }

  async #pauseScheduler(at: number): Promise<void> {
    const scheduler = this.#schedulers[at] as SchedulerProcess;
    scheduler.pause();
    this.counts.schedulersPaused++;
    await this.#parts.runs.ownerFell(scheduler, "SIGSTOP");
    await this.#comesBack(scheduler);
    await sleep(1_000);
  }

  async #terminateScheduler(at: number): Promise<void> {
    await (this.#schedulers[at] as SchedulerProcess).terminate();
    this.counts.schedulersTerminated++;
    await this.#replaceScheduler(at);
    await sleep(1_000);
  }

  /** A scheduler that runs a task which has resumed after a wait; waits a short time for one. */
  async #busyScheduler(): Promise<number> {
    const { installation } = this.#parts;
    const sql =
      "SELECT executor_job AS job FROM task_instance WHERE state = 'running' AND resumed_attempt IS NOT NULL";
    const jobs = await Promise.all(this.#schedulers.map((each) => installation.jobOf(each)));
    for (const deadline = performance.now() + 3_000; performance.now() < deadline; await sleep(10)) {
      const [busy] = await installation.sql<{ job: number }>(sql);
      const at = jobs.indexOf(busy?.job ?? 0);
      if (at >= 0) return at;
    }
    return 0;
  }

  async #killTriggerer(at: number): Promise<void> {
    const triggerer = this.#triggerer(at);
    await triggerer.kill();
    this.counts.triggerersKilled++;
    await this.#parts.triggers.ownerFell(triggerer, "kill -9");
    await sleep(this.#random.below(500));
    await this.#replaceTriggerer(at);
  }

  /** Longer than the lease: it resumes when others own its triggers, with events not yet reported. */
  async #pauseTriggerer(at: number): Promise<void> {
    const triggerer = this.#triggerer(at);
    triggerer.pause();
    this.counts.triggerersPaused++;
    await this.#parts.triggers.ownerFell(triggerer, "SIGSTOP");
    await this.#comesBack(triggerer);
  }

  /** A third triggerer joins, gets some triggers, and hands over when it stops. */
  async #visit(): Promise<void> {
    const { installation, triggerers, triggers } = this.#parts;
    const visitor = await installation.startTriggerer(triggerers[2]);
    await sleep(1_000 + this.#random.below(1_500));
    await visitor.terminate();
    this.counts.triggerersTerminated++;
    await triggers.ownerFell(visitor, "SIGTERM");
  }

  async #killRunner(at: number): Promise<void> {
    const triggerer = await this.#unsuspecting(at);
    const pid = await this.#runnerOf(triggerer);
    if (pid === null || !signal(pid, "SIGKILL")) return;
    this.counts.runnersKilled++;
    this.#died(triggerer);
    await waitFor(() => (triggerer.runnerPid() ?? pid) !== pid, 3_000);
    await sleep(200 + this.#random.below(500));
  }

  /** Until the triggerer replaces its runner; the next owner reports the events that happened in between. */
  async #pauseRunner(at: number): Promise<void> {
    const { triggers } = this.#parts;
    const triggerer = await this.#unsuspecting(at);
    const pid = await this.#runnerOf(triggerer);
    if (pid === null || !signal(pid, "SIGSTOP")) return;
    this.counts.runnersPaused++;
    const how = "SIGSTOP of the runner";
    triggers.mustGo(await this.#openOwnedGates(triggerer), how);
    // A runner that was not up yet gets more time, and the lease of its triggerer expires instead.
    await waitFor(() => (triggerer.runnerPid() ?? pid) !== pid, 8_000);
    signal(pid, "SIGCONT");
    this.#died(triggerer);
    await waitFor(() => !triggers.isWaitingAfter(how), PATIENCE_MS);
  }

  /** Too short to be replaced. */
  async #holdUpRunner(at: number): Promise<void> {
    const { triggers } = this.#parts;
    const triggerer = this.#triggerer(at);
    const pid = await this.#runnerOf(triggerer);
    if (pid === null || !signal(pid, "SIGSTOP")) return;
    this.counts.runnersHeldUp++;
    const how = "SIGSTOP and SIGCONT of the runner";
    triggers.mustGo(await this.#openOwnedGates(triggerer), how);
    await sleep(3_000);
    signal(pid, "SIGCONT");
    await waitFor(() => !triggers.isWaitingAfter(how), PATIENCE_MS);
  }

  /** Opens the gates that its triggers wait for now. Returns the affected triggers. */
  async #openOwnedGates(triggerer: TriggererProcess): Promise<number[]> {
    const { installation, gates } = this.#parts;
    const owned = await installation.sql<{ id: number; gate: string }>(
      `SELECT id, args->>'gate' AS gate FROM trigger
       WHERE owner_job = $1 AND kind = 'fault.gate' AND args->>'gate' <> 'never' LIMIT 5`,
      [await installation.jobOf(triggerer)],
    );
    for (const { gate } of owned) gates.open(gate);
    return owned.map(({ id }) => id);
  }

  /**
   * Two triggerers run one trigger. Either the rows of the triggerer without wake-ups are given to the other, which is
   * notified: both run them, and one of them no longer owns them. Or the rows are taken from a triggerer that continues to
   * run them, given to the other without a notification, and given back. Letters arrive in between, so that an event is in
   * flight.
   */
  async #seize(load: WaitingLoad): Promise<void> {
    const [hearing, deaf] = [0, 1] as const;
    for (let seized = 0, looks = 0; seized === 0 && looks < 10; looks++) {
      load.post();
      await sleep(this.#random.below(60));
      const isThereAndBack = looks % 4 === 3;
      seized = await this.#reassign(isThereAndBack ? hearing : deaf, isThereAndBack ? deaf : hearing);
      await sleep(50 + (isThereAndBack ? this.#random.below(500) : 0));
      if (isThereAndBack) await this.#reassign(deaf, hearing);
      this.seizedTriggers += seized;
      if (seized > 0) this.counts.seized++;
    }
    await this.#parts.installation.sql("SELECT pg_notify('tradewind', 'dags test')");
    await sleep(this.#random.below(300));
  }

  /** Returns the number of triggers. */
  async #reassign(from: number, to: number): Promise<number> {
    const { installation } = this.#parts;
    const jobs = await Promise.all([from, to].map((at) => installation.jobOf(this.#triggerer(at))));
    const rows = await installation.sql<object>(
      // In the lock order of all writers.
      `WITH seized AS (SELECT id FROM trigger WHERE owner_job = $1 ORDER BY fingerprint FOR UPDATE)
       UPDATE trigger t SET owner_job = $2, standby_job = NULL FROM seized
       WHERE t.id = seized.id AND EXISTS (SELECT 1 FROM job WHERE id = $2 AND state = 'running') RETURNING t.id`,
      jobs,
    );
    return rows.length;
  }

  async #block(load: WaitingLoad): Promise<void> {
    await load.blockATriggerer();
    this.counts.blocked++;
    await sleep(500);
  }

  async #crashDatabase(): Promise<void> {
    const { postgres, runs, triggers } = this.#parts;
    const outage = async () => {
      await postgres.crash(this.#random.chance(0.5) ? "immediate" : "kill");
      await sleep(this.#random.below(500));
      await postgres.resume();
    };
    await runs.outage(() => triggers.outage(outage));
    this.counts.crashed++;
    await sleep(1_500);
  }

  async #dropCommitAnswers(at: number): Promise<void> {
    const proxy = this.#proxy(at);
    const before = proxy.faults.dropped;
    proxy.set({
      kind: "drop-commit-answer",
      probability: 0.5,
      random: () => this.#random.below(1_000) / 1_000,
    });
    await waitFor(() => proxy.faults.dropped >= before + 3, 2_000);
    proxy.set({ kind: "pass" });
    this.counts.drops += proxy.faults.dropped - before;
    await sleep(200);
  }

  async #cut(at: number): Promise<void> {
    const proxy = this.#proxy(at);
    proxy.set({ kind: "cut" });
    this.counts.cut++;
    await sleep(50 + this.#random.below(600));
    proxy.set({ kind: "pass" });
    await sleep(300);
  }

  /** After others have declared it dead and taken over: then it must return under a new job id. */
  async #comesBack(component: ComponentProcess): Promise<void> {
    const { installation } = this.#parts;
    const job = await installation.jobOf(component);
    const sql = "SELECT 1 FROM job WHERE id = $1 AND state = 'dead'";
    await installation.until(
      "it is declared dead",
      async () => (await installation.sql(sql, [job])).length > 0,
    );
    component.resume();
    await installation.until("it comes back", async () => (await installation.jobOf(component)) !== job);
  }

  /** A triggerer whose runner may die once more. */
  async #unsuspecting(at: number): Promise<TriggererProcess> {
    if ((this.#deaths.get(this.#triggerer(at).pid) ?? 0) >= DEATHS_ALLOWED) await this.#killTriggerer(at);
    return this.#triggerer(at);
  }

  #died({ pid }: TriggererProcess): void {
    this.#deaths.set(pid, (this.#deaths.get(pid) ?? 0) + 1);
  }

  async #runnerOf(triggerer: TriggererProcess): Promise<number | null> {
    await waitFor(() => triggerer.runnerPid() !== null, 3_000);
    return triggerer.runnerPid();
  }

  #triggerer(at: number): TriggererProcess {
    return this.#triggerers[at] as TriggererProcess;
  }

  #proxy(at: number): PgProxy {
    return this.#parts.proxies[at] as PgProxy;
  }

  async #replaceScheduler(at: number): Promise<void> {
    const { installation, schedulers } = this.#parts;
    this.#schedulers[at] = await installation.start(schedulers[at] as SchedulerPlace);
  }

  async #replaceTriggerer(at: number): Promise<void> {
    const { installation, triggerers } = this.#parts;
    this.#triggerers[at] = await installation.startTriggerer(triggerers[at] as TriggererPlace);
  }
}

async function waitFor(holds: () => boolean, withinMs: number): Promise<void> {
  for (const deadline = performance.now() + withinMs; !holds() && performance.now() < deadline; )
    await sleep(20);
}

/** false: the process no longer exists. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

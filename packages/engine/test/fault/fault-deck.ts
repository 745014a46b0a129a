/**
 * The faults, dealt from a seeded deck in two lanes at once: one kills and stops schedulers, the other damages the database,
 * the connections to it, and task processes. At any moment at least one scheduler is healthy, so that a process can take
 * over.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomOf } from "../reference/random-dag.ts";
import type { PgProxy } from "../support/pg-proxy.ts";
import type { CrashablePostgres } from "../support/private-postgres.ts";
import { isAlive } from "../support/process-alive.ts";
import type { FaultInstallation } from "./installation.ts";
import type { SchedulerPlace, SchedulerProcess } from "./scheduler-process.ts";
import type { TakeoverWatch } from "./watches.ts";

export interface FaultParts {
  readonly installation: FaultInstallation;
  readonly postgres: CrashablePostgres;
  /** The proxy between the last place and the database. */
  readonly proxy: PgProxy;
  readonly takeovers: TakeoverWatch;
  readonly places: readonly SchedulerPlace[];
}

const PATIENCE_MS = 25_000;

export class FaultDeck {
  readonly counts = {
    killed: 0,
    paused: 0,
    terminated: 0,
    crashed: 0,
    cut: 0,
    partitioned: 0,
    drops: 0,
    childrenKilled: 0,
  };
  readonly #parts: FaultParts;
  readonly #random: Random;
  readonly #up: SchedulerProcess[] = [];

  constructor(parts: FaultParts, seed: number) {
    this.#parts = parts;
    this.#random = randomOf(seed);
  }

  async startAll(): Promise<void> {
    const { installation, places } = this.#parts;
    this.#up.push(...(await Promise.all(places.map((place) => installation.start(place)))));
  }

  /** Deals all faults `scale` times. */
  async deal(scale: number): Promise<void> {
    const times = <T>(count: number, fault: T): T[] =>
      Array<T>(Math.max(1, Math.round(count * scale))).fill(fault);
    const lane = async (faults: readonly (() => Promise<void>)[]) => {
      for (const fault of this.#random.shuffled(faults)) await fault();
    };
    await Promise.all([
      lane([
        ...times(4, () => this.#kill()),
        ...times(3, () => this.#pause()),
        ...times(2, () => this.#terminate()),
      ]),
      lane([
        ...times(4, () => this.#crashDatabase()),
        ...times(4, () => this.#dropCommitAnswers()),
        ...times(3, () => this.#cut(300 + this.#random.below(1_000))),
        ...times(1, () => this.#partition()),
        ...times(6, () => this.#killChild()),
      ]),
    ]);
  }

  /** Kills owners of runs until this many runs have changed owners: earlier victims may have owned none. */
  async ensureTakeovers(atLeast: number): Promise<void> {
    const { installation, takeovers } = this.#parts;
    while (takeovers.taken.length < atLeast) {
      const [owner] = await installation.sql<{ pid: number }>(
        "SELECT j.pid FROM dag_run r JOIN job j ON j.id = r.owner_job WHERE r.state = 'running' ORDER BY r.id LIMIT 1",
      );
      const at = this.#up.findIndex(({ pid }) => pid === owner?.pid);
      if (at < 0) await sleep(200);
      else await this.#kill(at);
    }
  }

  async #kill(victim?: number): Promise<void> {
    const { takeovers } = this.#parts;
    const at = victim ?? (await this.#victim());
    await this.#scheduler(at).kill();
    this.counts.killed++;
    await takeovers.ownerFell(this.#scheduler(at), "kill -9");
    await sleep(this.#random.below(1_500));
    await this.#replace(at);
    await this.#takenOver();
  }

  /** Longer than the lease: it resumes when others own its runs, with reports of its tasks not yet stored. */
  async #pause(): Promise<void> {
    const { takeovers } = this.#parts;
    await sleep(this.#random.below(500));
    const scheduler = this.#scheduler(await this.#victim());
    scheduler.pause();
    this.counts.paused++;
    await takeovers.ownerFell(scheduler, "SIGSTOP");
    await this.#takenOver();
    await this.#comesBack(scheduler, () => scheduler.resume());
  }

  async #terminate(): Promise<void> {
    const at = await this.#victim();
    const scheduler = this.#scheduler(at);
    await scheduler.terminate();
    this.counts.terminated++;
    await this.#replace(at);
  }

  async #crashDatabase(): Promise<void> {
    const { postgres, takeovers } = this.#parts;
    await takeovers.outage(async () => {
      await postgres.crash(this.#random.chance(0.5) ? "immediate" : "kill");
      await sleep(this.#random.below(800));
      await postgres.resume();
    });
    this.counts.crashed++;
    await sleep(1_500);
  }

  async #dropCommitAnswers(): Promise<void> {
    const { proxy } = this.#parts;
    const before = proxy.faults.dropped;
    proxy.set({
      kind: "drop-commit-answer",
      probability: 0.3,
      random: () => this.#random.below(1_000) / 1_000,
    });
    await waitFor(() => proxy.faults.dropped > before, 5_000);
    await sleep(500);
    proxy.set({ kind: "pass" });
    this.counts.drops += proxy.faults.dropped - before;
    await sleep(500);
  }

  async #cut(ms: number): Promise<void> {
    const { proxy } = this.#parts;
    proxy.set({ kind: "cut" });
    this.counts.cut++;
    await sleep(ms);
    proxy.set({ kind: "pass" });
    await sleep(500);
  }

  /** Cut off for longer than the lease, but alive. */
  async #partition(): Promise<void> {
    const { proxy } = this.#parts;
    proxy.set({ kind: "cut" });
    this.counts.partitioned++;
    await this.#comesBack(this.#scheduler(2), () => proxy.set({ kind: "pass" }));
  }

  /** Only for a sturdy DAG: a killed process is a failed try, and other DAGs must fail as scripted. */
  async #killChild(): Promise<void> {
    const sturdy = () =>
      this.#parts.installation.ledger
        .underWay()
        .filter(({ dag, pid }) => dag.startsWith("sturdy") && isAlive(pid));
    await waitFor(() => sturdy().length > 0, 5_000);
    const victims = sturdy();
    if (victims.length === 0) return;
    const { attempt, pid } = this.#random.one(victims);
    // Stopped first: it may have ended that task in the meantime and work for a DAG that must not be hit.
    process.kill(pid, "SIGSTOP");
    if (sturdy().some((line) => line.attempt === attempt)) {
      process.kill(pid, "SIGKILL");
      this.counts.childrenKilled++;
    } else process.kill(pid, "SIGCONT");
    await sleep(300);
  }

  /** The place, in its own lane, whose scheduler has most active tasks; waits for one that has any. */
  async #victim(): Promise<number> {
    const { ledger } = this.#parts.installation;
    const deadline = performance.now() + 5_000;
    for (;;) {
      const busy = ledger.underWay().map((line) => line.scheduler);
      const [first = 0, second = 0] = [0, 1].map(
        (at) => busy.filter((pid) => pid === this.#scheduler(at).pid).length,
      );
      if (first + second > 0 || performance.now() > deadline) return first >= second ? 0 : 1;
      await sleep(20);
    }
  }

  /** After others have declared it dead, not only taken its runs: then it must return under a new job id. */
  async #comesBack(scheduler: SchedulerProcess, release: () => void): Promise<void> {
    const { installation } = this.#parts;
    const job = await installation.jobOf(scheduler);
    const sql = "SELECT 1 FROM job WHERE id = $1 AND state = 'dead'";
    await installation.until(
      "it is declared dead",
      async () => (await installation.sql(sql, [job])).length > 0,
    );
    release();
    await installation.until("it comes back", async () => (await installation.jobOf(scheduler)) !== job);
  }

  #scheduler(at: number): SchedulerProcess {
    return this.#up[at] as SchedulerProcess;
  }

  async #replace(at: number): Promise<void> {
    const { installation, places } = this.#parts;
    this.#up[at] = await installation.start(places[at] as SchedulerPlace);
  }

  async #takenOver(): Promise<void> {
    await waitFor(() => !this.#parts.takeovers.isWaiting, PATIENCE_MS);
  }
}

async function waitFor(holds: () => boolean, withinMs: number): Promise<void> {
  for (const deadline = performance.now() + withinMs; !holds() && performance.now() < deadline; )
    await sleep(20);
}

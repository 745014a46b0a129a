/**
 * How a job that drives runs stops without interrupting its tasks. While it drains, it claims nothing, creates no runs and
 * starts no attempts. Runs without attempts in this process are released at once, so that other jobs continue them and adopt
 * their remote attempts. The others stay with this job, because it receives the reports of their attempts; each is released
 * when the end of its last attempt is stored. The lease is renewed meanwhile.
 *
 * A streaming task does not end by itself. It is cancelled when no other task of its run is active: its run can then be
 * released, and the next owner starts it again.
 *
 * The drain ends when no run is left, when its time is up, when `endDrain` is called, or when the lease is no longer
 * trusted, because attempts are stopped then anyway. The remaining attempts are aborted, killed after the grace period, and
 * reported as lost, which uses up no try. If the job dies while it drains, its lease expires and its runs are taken over.
 */
import { GRACE_MS, isStreaming } from "../../model/index.ts";
import type { JobKind } from "../../store/job/job-lease.ts";
import { type DrainFacts, RELEASE_LIMIT, releaseRuns } from "../../store/run/run-release.ts";
import type { DagRunJobOptions } from "./dag-run-job-options.ts";
import { NotifiedJob } from "./notified-job.ts";

const DRAIN_MS = 5_000;
const STOP_GRACE_MS = 5_000;
/** Interval of checks for changes without an event: callbacks that have ended, runs whose rows were locked. */
const CHECK_MS = 200;
const LOG_MS = 10_000;
/** Interval between two reads of the owned runs: a peer may have handed over a run without a wake-up. */
const SWEEP_MS = 1_000;

type DrainEnd = "drained" | "time is up" | "told to end" | "lease not trusted";

interface Draining {
  readonly until: number;
  readonly end: (reason: DrainEnd) => void;
  hasEnded: boolean;
  releasedAt: number;
}

export abstract class DrainingJob extends NotifiedJob {
  readonly #drainMs: number;
  readonly #graceMs: number;
  readonly #isAlone: boolean;
  #draining: Draining | null = null;
  /** Streaming attempts that were cancelled. */
  readonly #stopping = new Set<string>();

  constructor(kind: JobKind, options: DagRunJobOptions) {
    super(kind, options);
    this.#drainMs = options.drainMs ?? DRAIN_MS;
    this.#graceMs = options.stopGraceMs ?? STOP_GRACE_MS;
    this.#isAlone = options.isAlone === true;
  }

  /** Called once in the loop when the drain starts; again if it fails. */
  protected async onDraining(): Promise<void> {}
  /** Runs have been released. */
  protected abstract onReleased(): void;

  async drain(): Promise<void> {
    if (this.state !== "running") return;
    this.state = "draining";
    // Peers that start during a rolling deploy are not counted any more, but are notified of freed slots.
    this.hasPeers = true;
    const began = performance.now();
    const { promise, resolve } = Promise.withResolvers<DrainEnd>();
    const until = began + this.#drainMs;
    const draining = { until, end: resolve, hasEnded: false, releasedAt: Number.NEGATIVE_INFINITY };
    this.#draining = draining;
    const { admission, executors } = this.load;
    admission.peerWaiters.close();
    for (const executor of executors) executor.drain?.();
    // Nothing to wait for. If a claim is in flight, the end of the job releases its runs.
    if (this.#isEmpty) return;
    this.logger.info("draining", this.#progress());
    const timer = setTimeout(resolve, this.#drainMs, "time is up");
    const progress = setInterval(() => this.logger.info("draining", this.#progress()), LOG_MS);
    const check = setInterval(() => {
      if (!this.#isAlone && !this.lease.isTrusted()) resolve("lease not trusted");
      this.wake();
    }, CHECK_MS);
    this.wake();
    const reason = await promise;
    draining.hasEnded = true;
    clearTimeout(timer);
    clearInterval(progress);
    clearInterval(check);
    const took = { took_ms: Math.round(performance.now() - began) };
    if (reason === "drained") return this.logger.info("drained", took);
    const { attempts, runs } = this.#progress();
    this.logger.warn("drain ended", { reason, runs, attempts, ...took });
    // The loop still releases runs whose attempts end.
    if (this.state === "draining")
      await Promise.all(executors.map((executor) => executor.stop(this.#graceMs)));
  }

  endDrain(): boolean {
    const draining = this.#draining;
    if (this.state !== "draining" || draining === null || draining.hasEnded) return false;
    draining.end("told to end");
    return true;
  }

  override async stop(graceMs = this.#graceMs): Promise<void> {
    this.endDrain();
    await super.stop(graceMs);
  }

  protected override async turn(): Promise<void> {
    await super.turn();
    if (this.state === "draining" && this.#draining) await this.#release(this.#draining);
  }

  get #isEmpty(): boolean {
    const { callbacks, activeAttempts } = this.load;
    return this.actors.size + activeAttempts.localSize + callbacks.localSize === 0;
  }

  async #release(draining: Draining): Promise<void> {
    const { actors } = this;
    const { drop, activeAttempts } = this.load;
    const isFirst = draining.releasedAt === Number.NEGATIVE_INFINITY;
    if (isFirst) await this.onDraining();
    this.#stopStreams();
    const kept = this.#kept();
    const isDue = performance.now() - draining.releasedAt >= SWEEP_MS;
    if (!isDue && actors.keys().every((id) => kept.has(id)) && activeAttempts.localSize > 0) return;
    const released = await this.#releaseExcept(kept);
    draining.releasedAt = performance.now();
    for (const id of released) {
      activeAttempts.release(id);
      drop(actors.get(id));
    }
    if (released.length > 0 || isFirst) this.onReleased();
    if (released.length === RELEASE_LIMIT) return this.wake();
    if (this.#isEmpty) draining.end("drained");
  }

  async #releaseExcept(kept: ReadonlySet<number>): Promise<number[]> {
    const { attempts, remaining_ms } = this.#progress();
    const drain_until = new Date(this.lease.now() + remaining_ms).toISOString();
    const facts: DrainFacts = { draining: true, drain_until, runs: kept.size, attempts };
    try {
      return await releaseRuns(this.database, this.lease.jobId, { kept, facts });
    } catch (error) {
      // The runs may have been released although the call failed.
      for (const id of this.actors.keys()) if (!kept.has(id)) this.markStale(id);
      throw error;
    }
  }

  /** Runs with attempts that end with this process or are not stored yet, and runs whose last decision may not be stored. */
  #kept(): Set<number> {
    const { activeAttempts, stale } = this.load;
    const kept = new Set([...activeAttempts.localRuns(), ...stale]);
    for (const { id, model } of this.actors.values()) {
      const { queued, running, restarting } = model.counts.byState;
      if (queued + running + restarting > activeAttempts.adoptableOf(id)) kept.add(id);
    }
    return kept;
  }

  #stopStreams(): void {
    const { activeAttempts } = this.load;
    const streams: { readonly attempt: string; readonly runId: number; readonly graceMs: number }[] = [];
    const busy = new Set<number>();
    for (const [attempt, { executor, mapIndex, runId, taskId }] of activeAttempts.all()) {
      if (executor.remote) continue;
      const manifest = this.actors.get(runId)?.model.get(taskId, mapIndex)?.node.manifest;
      if (!manifest || !isStreaming(manifest)) busy.add(runId);
      else if (!this.#stopping.has(attempt))
        streams.push({ attempt, runId, graceMs: manifest.graceMs ?? GRACE_MS });
    }
    for (const { attempt, graceMs, runId } of streams) {
      if (busy.has(runId)) continue;
      this.#stopping.add(attempt);
      activeAttempts.cancel(attempt, "the scheduler is stopping", { isLost: true, graceMs });
    }
  }

  #progress(): { runs: number; attempts: number; remaining_ms: number } {
    const remaining = (this.#draining?.until ?? 0) - performance.now();
    const attempts = this.load.activeAttempts.localSize;
    return { runs: this.actors.size, attempts, remaining_ms: Math.max(0, Math.round(remaining)) };
  }
}

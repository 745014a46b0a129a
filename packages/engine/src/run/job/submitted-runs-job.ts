/**
 * A DagRunJob that drives only the runs that a program submits: the implementation of the public `DagRunJob`
 * (process/dag-run-job.ts). Any number of schedulers, backfill jobs and other drivers may run next to it.
 *
 * Runs that have not started are kept in memory; created runs that have not ended are read from the database when they may
 * have changed. So runs that another job drove or ended are reported, too. If the job is killed, its lease expires: a
 * scheduler takes over the started runs, and the others were never created.
 */
import type { Topic } from "../../job/wake-up.ts";
import { liveDrivers } from "../../store/job/job-lease.ts";
import { type ClaimedRun, leavesMore } from "../../store/run/run-claim.ts";
import {
  readSubmitted,
  releaseRuns,
  reserveRuns,
  type SubmittedRun,
  type SubmittedState,
  startSubmitted,
  takeOverSubmitted,
} from "../../store/run/submitted-runs.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";
import type { DagRunJobOptions } from "./dag-run-job-options.ts";
import { NotifiedJob } from "./notified-job.ts";
import { PendingReads, type ReadsAfter } from "./pending-reads.ts";
import { isRunTopic, runOf } from "./scheduler-reads.ts";

const CLAIM_LIMIT = 32;
/** Maximum number of waiting runs that are searched for one whose DAG has a free slot. */
const CANDIDATES = 256;
/** Without wake-ups, every n-th heartbeat is a sweep. */
const SWEEP_EVERY = 5;

/** A reason to query the database. "runs": a free slot, or the end of a run; "owned": edits. */
type PendingRead = "runs" | "owned" | "pools" | "peers" | "callbacks";
const EVERYTHING: readonly PendingRead[] = ["runs", "owned", "pools", "peers", "callbacks"];
const AFTER: ReadsAfter<PendingRead> = {
  dags: ["owned", "runs", "pools"],
  pools: ["pools"],
  jobs: ["peers", "runs"],
  ended: ["runs"],
  runs: ["runs"],
  run: ["runs"],
};

export interface SubmittedRunsJobOptions extends DagRunJobOptions {
  /** Maximum number of active runs. */
  readonly maxActive: number;
  /** Whether to take over runs of dead schedulers, not only those of other drivers. */
  readonly fromAny: boolean;
  readonly onEnded: (run: SubmittedRun, state: SubmittedState) => void;
  /** A run or a callback started or ended. */
  readonly onChange: () => void;
}

export class SubmittedRunsJob extends NotifiedJob {
  readonly #options: SubmittedRunsJobOptions;
  /** In the order of their start. */
  #waiting: SubmittedRun[] = [];
  /** Created runs that have not ended. */
  readonly #open = new Map<SubmittedRun, number>();
  readonly #reads = new PendingReads(EVERYTHING, AFTER);
  /** Paused DAGs that were reported. */
  readonly #paused = new Set<string>();
  #untilSweep = 0;

  constructor(options: SubmittedRunsJobOptions) {
    // Schedulers adopt the callbacks of dead jobs.
    super("driver", { ...options, dags: [] });
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get active(): number {
    return this.#open.size;
  }

  /** Whether all submitted runs have ended, with their callbacks. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#open.size === 0 && !this.load.callbacks.areUnderWay;
  }

  async submit(runs: readonly SubmittedRun[]): Promise<void> {
    await reserveRuns(this.database, this.lease.jobId, idsOf(runs));
    this.#waiting.push(...runs);
    this.#reads.request("runs");
    this.wake();
  }

  /** Drops the runs that have not started. Created runs are left to schedulers. */
  async withdraw(): Promise<void> {
    const withdrawn = this.#waiting;
    this.#waiting = [];
    await releaseRuns(this.database, this.lease.jobId, idsOf(withdrawn));
    this.wakeUps.send("runs");
  }

  override async stop(graceMs?: number): Promise<void> {
    await super.stop(graceMs);
    // Its runs can be taken over at once.
    this.wakeUps.send("runs");
  }

  protected override async collect(): Promise<ClaimedRun[]> {
    const look = this.#reads.consume();
    try {
      if (look.has("peers")) this.hasPeers = (await liveDrivers(this.database, this.lease.jobId)).length > 0;
      if (look.has("pools")) await this.refreshPools();
      if (look.has("owned")) await this.checkOwnedRuns();
      if (look.has("callbacks")) await this.adoptCallbacks();
      if (!look.has("runs")) return [];
      await this.#readOpen();
      const claimed = [...(await this.#takeOver()), ...(await this.#startNext())];
      // If loading them fails, the next heartbeat finds them.
      if (claimed.length > 0) this.#untilSweep = 0;
      if (this.#reads.size > 0) this.wake();
      this.#options.onChange();
      return claimed;
    } catch (error) {
      this.#reads.requestAll();
      throw error;
    }
  }

  protected override async onHeartbeat(): Promise<void> {
    // A run may have become due, or lost its owner, without a wake-up.
    this.#reads.request("runs");
    if (this.lease.consumeLapse() || !this.isListening || --this.#untilSweep <= 0) {
      this.#untilSweep = SWEEP_EVERY;
      this.#reads.requestAll();
      this.requestPolls("");
      // After an expired lease other jobs may own them, or this job has another id.
      await reserveRuns(this.database, this.lease.jobId, idsOf(this.#waiting));
    }
    this.requestGates();
  }

  protected override onLeaseLost(): void {
    super.onLeaseLost();
    this.#untilSweep = 0;
    this.#reads.requestAll();
  }

  protected override onRunEnded(): void {
    this.#reads.request("runs");
    this.wakeUps.send("ended");
    this.wake();
  }

  /** Schedulers move a later date back to the queue when an earlier one needs its slot. */
  protected override onWaitingForPast(): void {}

  protected override onStored(batch: RunBatch): void {
    if (batch.signals.length > 0) this.wakeUps.send("states");
    this.announceFreedSlots(batch);
  }

  /** Reports runs that have ended; runs that went back to the queue wait again, before all others. */
  async #readOpen(): Promise<void> {
    if (this.#open.size === 0) return;
    const ids = [...new Set(this.#open.values())];
    const states = new Map((await readSubmitted(this.database, ids)).map((state) => [state.id, state]));
    const again: SubmittedRun[] = [];
    for (const [run, id] of this.#open) {
      const state = states.get(id) ?? deleted(run, id);
      if (state.state === "running") continue;
      this.#open.delete(run);
      if (state.state === "queued") again.push({ ...run, id });
      else this.#options.onEnded(run, state);
    }
    await reserveRuns(this.database, this.lease.jobId, idsOf(again));
    this.#waiting.unshift(...again);
  }

  async #takeOver(): Promise<ClaimedRun[]> {
    const ids = [...this.#open.values()].filter((id) => !this.actors.has(id));
    if (ids.length === 0 || !this.lease.mayJudge()) return [];
    const by = { jobId: this.lease.jobId, limit: CLAIM_LIMIT, fromAny: this.#options.fromAny };
    const runs = await takeOverSubmitted(this.database, by, ids);
    if (runs.length > 0) this.logger.info("took over runs", { runs: runs.length, job: this.lease.jobId });
    if (leavesMore(runs, CLAIM_LIMIT)) this.#reads.request("runs");
    return runs;
  }

  async #startNext(): Promise<ClaimedRun[]> {
    const limit = Math.min(this.#options.maxActive - this.#open.size, CLAIM_LIMIT);
    const candidates = this.#waiting.slice(0, CANDIDATES);
    if (limit <= 0 || candidates.length === 0) return [];
    const { outcomes, paused, started } = await startSubmitted(
      this.database,
      {
        jobId: this.lease.jobId,
        limit,
        columns: this.columns,
      },
      candidates,
    );
    // A run that was withdrawn after its start stays open.
    this.#waiting = this.#waiting.filter((run) => !outcomes.has(run));
    for (const [run, outcome] of outcomes) {
      if (outcome.kind === "there") this.#open.set(run, outcome.id);
      else this.#options.onEnded(run, { ...deleted(run, 0), endReason: outcome.reason });
    }
    this.#warnOfPaused(paused);
    if (started.length > 0) this.wakeUps.send("states");
    // Some of them may have ended already, and more may start.
    if (outcomes.size > 0) this.#reads.request("runs");
    return [...started];
  }

  #warnOfPaused(dagIds: readonly string[]): void {
    for (const dagId of dagIds) {
      if (this.#paused.has(dagId)) continue;
      this.#paused.add(dagId);
      this.logger.warn("the DAG is paused: its runs do not start", {
        dag: dagId,
        remedy: `tradewind dags unpause ${dagId}`,
      });
    }
  }

  protected override onWakeUp(topic: Topic | ""): void {
    if (this.requestPolls(topic) || !this.#reads.requestAfter(topic)) return;
    if (isRunTopic(topic)) this.markStale(runOf(topic));
    if (topic === "ended") this.requestGates();
    this.wake();
  }
}

function idsOf(runs: readonly SubmittedRun[]): number[] {
  return runs.flatMap(({ id }) => (id === null ? [] : [id]));
}

function deleted({ dagId, logicalDate, runId }: SubmittedRun, id: number): SubmittedState {
  const times = { startedAt: null, endedAt: null };
  return { id, dagId, runId, logicalDate, ...times, state: "failed", endReason: "the run was deleted" };
}

/**
 * The backfill job: a DagRunJob that adopts backfills, creates the runs of their dates within their limits, and drives only
 * those runs. Any number of backfill jobs may run next to any number of schedulers: a backfill has one owner at a time, a
 * date has one run, and pools, priorities and limits of tasks are in the database.
 *
 * It queries the database when there is a reason: a wake-up, the end of one of its runs, or the heartbeat. If it is killed,
 * its lease expires; another job adopts its backfills and then takes over their runs.
 */
import type { Topic } from "../../job/wake-up.ts";
import {
  adoptBackfill,
  ownedBackfills,
  startBackfillRuns,
  takeOverBackfillRuns,
} from "../../store/backfill/backfill-claim.ts";
import { planBackfill } from "../../store/backfill/backfill-plan.ts";
import { endBackfills } from "../../store/backfill/backfills.ts";
import { liveDrivers } from "../../store/job/job-lease.ts";
import { type ClaimedRun, leavesMore } from "../../store/run/run-claim.ts";
import { releaseBackfills } from "../../store/run/run-release.ts";
import { afterExchange, makeWayInBackfills } from "../../store/run/run-slots.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import { hasSubDags } from "./abandoned-runs.ts";
import type { DagRunJobOptions } from "./dag-run-job-options.ts";
import { DrainingJob } from "./draining-job.ts";
import { endsPast } from "./gates.ts";
import { PendingReads, type ReadsAfter } from "./pending-reads.ts";
import { isRunTopic, runOf } from "./scheduler-reads.ts";

const CLAIM_LIMIT = 32;
/** Without wake-ups, every n-th heartbeat is a sweep. */
const SWEEP_EVERY = 5;

/**
 * A reason to query the database. "backfills": one to adopt; "runs": a free slot, or the end of a run; "places": a run may
 * need the slot of a later one; "owned": edits.
 */
type PendingRead = "backfills" | "runs" | "places" | "orphans" | "owned" | "pools" | "peers" | "callbacks";
const EVERYTHING: readonly PendingRead[] = [
  "backfills",
  "runs",
  "places",
  "orphans",
  "owned",
  "pools",
  "peers",
  "callbacks",
];
const AFTER: ReadsAfter<PendingRead> = {
  backfills: ["backfills", "owned", "runs"],
  dags: ["owned", "runs", "places", "pools"],
  pools: ["pools"],
  jobs: ["peers", "backfills", "orphans", "callbacks"],
  // One of our runs may wait for it: as its earlier run, or for its date.
  ended: ["runs"],
  // One of our runs may have been cleared.
  runs: ["runs"],
  callbacks: ["callbacks"],
  run: ["runs", "places"],
};

export class BackfillJob extends DrainingJob {
  /** The backfills that it owned when last read. */
  readonly #own = new Set<number>();
  readonly #reads = new PendingReads(EVERYTHING, AFTER);
  #untilSweep = 0;
  #isCollecting = false;

  constructor(options: DagRunJobOptions) {
    super("backfill", options);
  }

  /** Whether it owns no backfill and no run, and has searched for one since the last wake-up. */
  get isIdle(): boolean {
    const isLooking = this.#isCollecting || this.#reads.has("backfills");
    return !isLooking && this.#own.size === 0 && this.actors.size === 0;
  }

  /** Releases the backfills: their next owner creates further runs, and takes over the runs that this job releases. */
  protected override async onDraining(): Promise<void> {
    await releaseBackfills(this.database, this.lease.jobId);
    this.#own.clear();
    this.wakeUps.send("backfills");
  }

  protected override onReleased(): void {
    this.wakeUps.send("jobs");
  }

  protected override async collect(): Promise<ClaimedRun[]> {
    const look = this.#reads.consume();
    this.#isCollecting = true;
    try {
      if (look.has("peers")) this.hasPeers = (await liveDrivers(this.database, this.lease.jobId)).length > 0;
      if (look.has("pools")) await this.refreshPools();
      if (look.has("owned")) await this.#checkOwned();
      if (look.has("callbacks")) await this.adoptCallbacks();
      if (look.has("backfills")) await this.#adopt();
      let claimed = look.has("orphans") ? await this.#takeOver() : [];
      if (look.has("runs") || this.#reads.has("runs")) claimed.push(...(await this.#next()));
      if (look.has("places")) claimed = await this.#makeWay(claimed);
      // If loading them fails, the next heartbeat finds them.
      if (claimed.length > 0) this.#untilSweep = 0;
      if (this.#reads.size > 0) this.wake();
      return claimed;
    } catch (error) {
      this.#reads.requestAll();
      throw error;
    } finally {
      this.#isCollecting = false;
    }
  }

  protected override async onHeartbeat(): Promise<void> {
    const dead = await this.lease.expireOthers();
    for (const job of dead) this.logger.warn("a component died", { ...job });
    if (dead.length > 0) this.wakeUps.send("jobs");
    const isSweep =
      this.lease.consumeLapse() || dead.length > 0 || !this.isListening || --this.#untilSweep <= 0;
    if (isSweep) {
      this.#untilSweep = SWEEP_EVERY;
      this.#reads.requestAll();
      this.requestPolls("");
    } else if (this.lease.someoneLeft) this.#reads.request("backfills", "orphans");
    this.requestGates();
  }

  protected override onLeaseLost(): void {
    super.onLeaseLost();
    this.#own.clear();
    this.#reads.requestAll();
  }

  protected override onRunEnded(actor: RunActor): void {
    this.#reads.request("runs");
    // Schedulers cancel the runs of sub-DAGs.
    if (hasSubDags(actor.version.manifest)) this.wakeUps.send("unwaited");
    this.wakeUps.send("ended");
    this.wake();
  }

  protected override onWaitingForPast(): void {
    this.#reads.request("places");
    this.wake();
  }

  protected override onStored(batch: RunBatch): void {
    this.wakeUps.sendHere("tasks");
    if (batch.signals.length > 0) this.wakeUps.send("states");
    if (this.hasPeers && endsPast(batch, this.actors)) this.wakeUps.sendToOthers("ended");
    this.announceFreedSlots(batch);
  }

  /** Adopts one backfill per turn, so that other jobs get their share. */
  async #adopt(): Promise<void> {
    const adopted = await adoptBackfill(this.database, {
      jobId: this.lease.jobId,
      has: this.#own.size,
      mayJudge: this.lease.mayJudge(),
      dags: this.dags,
    });
    if (!adopted) return;
    this.#own.add(adopted.id);
    this.logger.info("adopted a backfill", {
      backfill: adopted.id,
      dag: adopted.dag_id,
      job: this.lease.jobId,
    });
    this.#reads.request("backfills", "orphans", "runs");
  }

  async #takeOver(): Promise<ClaimedRun[]> {
    if (this.#own.size === 0 || !this.lease.mayJudge()) return [];
    const runs = await takeOverBackfillRuns(this.database, this.lease.jobId, CLAIM_LIMIT);
    if (runs.length > 0) this.logger.info("took over runs", { runs: runs.length, job: this.lease.jobId });
    if (leavesMore(runs, CLAIM_LIMIT)) this.#reads.request("orphans");
    return runs;
  }

  /** Creates and starts the runs of the next dates of each backfill, and ends finished backfills. */
  async #next(): Promise<ClaimedRun[]> {
    this.#reads.drop("runs");
    if (this.#own.size === 0) return [];
    for (const id of this.#own) {
      // One step per turn: a long range of dates with existing runs must not delay reports and the heartbeat.
      const { cancelled, isMore, made } = await planBackfill(this.database, id, this.lease.jobId);
      for (const run of cancelled) this.wakeUps.send(`run:${run}`);
      if (made > 0) this.wakeUps.send("states");
      if (isMore) this.#reads.request("runs");
    }
    const started = await startBackfillRuns(this.database, {
      jobId: this.lease.jobId,
      limit: CLAIM_LIMIT,
      columns: this.columns,
    });
    if (started.length > 0) this.wakeUps.send("states");
    if (leavesMore(started, CLAIM_LIMIT)) this.#reads.request("runs");
    for (const { id, dag_id, state } of await endBackfills(this.database, [...this.#own])) {
      this.#own.delete(id);
      this.logger.info("backfill ended", { backfill: id, dag: dag_id, state });
      this.wakeUps.send("backfills");
    }
    return started;
  }

  /** After the start: a run that was started does not need the slot of another. */
  async #makeWay(claimed: ClaimedRun[]): Promise<ClaimedRun[]> {
    if (this.#own.size === 0) return claimed;
    const exchange = await makeWayInBackfills(this.database, {
      jobId: this.lease.jobId,
      columns: this.columns,
    });
    for (const id of exchange.wentBack) {
      this.markStale(id);
      this.wakeUps.send(`run:${id}`);
    }
    if (exchange.started.length > 0) this.wakeUps.send("states");
    return afterExchange(claimed, exchange);
  }

  /** Reads which backfills this job owns, and which of its runs were edited or paused. */
  async #checkOwned(): Promise<void> {
    const own = await ownedBackfills(this.database, this.lease.jobId);
    this.#own.clear();
    for (const id of own) this.#own.add(id);
    await this.checkOwnedRuns();
  }

  protected override onWakeUp(topic: Topic | ""): void {
    if (this.requestPolls(topic) || !this.#reads.requestAfter(topic)) return;
    if (isRunTopic(topic)) this.markStale(runOf(topic));
    if (isRunTopic(topic) || topic === "ended") this.requestGates();
    this.wake();
  }
}

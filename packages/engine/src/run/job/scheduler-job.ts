/**
 * The scheduler: a DagRunJob that creates scheduled runs and claims all active runs. Any number of schedulers may use one
 * database.
 *
 * It queries the database only when there is a reason: a wake-up (a run was created, a DAG changed, slots were freed), a
 * timer for the next due date, the end of one of its runs, or the heartbeat. A heartbeat that finds a dead job takes over
 * its work; every fifth heartbeat is a sweep, in case a wake-up was lost.
 */
import type { Topic } from "../../job/wake-up.ts";
import { planner } from "../../model/calendar/planner.ts";
import { pauseAfterFailures } from "../../store/dag/failure-pause.ts";
import { dropUnreadReports } from "../../store/execute/reports.ts";
import { liveDrivers } from "../../store/job/job-lease.ts";
import { createDueRuns, nextDueIn, planContinuous } from "../../store/plan/due-runs.ts";
import {
  type ClaimedRun,
  leavesMore,
  nextQueuedAt,
  type StartAmount,
  startQueuedRuns,
  takeOverRuns,
} from "../../store/run/run-claim.ts";
import { afterExchange, makeWay } from "../../store/run/run-slots.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import { cancelAbandoned, hasSubDags } from "./abandoned-runs.ts";
import type { DagRunJobOptions } from "./dag-run-job-options.ts";
import { DrainingJob } from "./draining-job.ts";
import { endsPast } from "./gates.ts";
import { RunBudget } from "./run-budget.ts";
import { RunSharing } from "./run-sharing.ts";
import {
  concernsHosts,
  EVERYTHING,
  isRunTopic,
  NOTHING,
  type Reads,
  readsAfter,
  runOf,
} from "./scheduler-reads.ts";

/** Maximum number of runs per claim: few enough to leave some to other schedulers. */
const CLAIM_LIMIT = 64;
const SHARED_CLAIM_LIMIT = 16;
const DUE_LIMIT = 200;
/** A due DAG that another job has locked is checked again after this time. */
const BUSY_MS = 100;
/** Without wake-ups, every n-th heartbeat is a sweep. */
export const SWEEP_EVERY = 5;

export interface SchedulerJobOptions extends DagRunJobOptions {
  /** The scheduler is `finished` after this many of its runs have ended. Left out: never. */
  readonly runs?: number | undefined;
  /** Evaluates the timetables of bundles. @param onPlanned A DAG has a new plan. */
  readonly timetables: (onPlanned: () => void) => Timetables;
}

export interface Timetables {
  /** There may be timetables to evaluate. */
  poll(): void;
  stop(): Promise<void>;
}

export class SchedulerJob extends DrainingJob {
  #pendingReads: Reads = EVERYTHING;
  #dueTimer: NodeJS.Timeout | null = null;
  #queuedTimer: NodeJS.Timeout | null = null;
  /** Heartbeats until the next sweep. */
  #untilSweep = 0;
  #offLocal: () => void = () => {};
  readonly #timetables: Timetables;
  readonly #sharing: RunSharing;
  /** There may be runs to claim of which the peers were not notified. */
  #isUntold = false;
  readonly #budget: RunBudget | null;
  readonly #finished = Promise.withResolvers<void>();

  constructor(options: SchedulerJobOptions) {
    super("scheduler", options);
    const { database, runs } = options;
    this.#budget = runs === undefined ? null : new RunBudget(database, runs);
    this.#timetables = options.timetables(() => this.#requestRead({ due: true }));
    this.#sharing = new RunSharing({
      ...this.load,
      database,
      logger: this.logger,
      wakeUps: this.wakeUps,
      isOpen: runs === undefined,
      dags: this.dags,
      wake: () => this.wake(),
      markStale: (id) => this.markStale(id),
    });
  }

  protected override async onStart(): Promise<void> {
    await super.onStart();
    await this.#sharing.beat(this.lease.jobId);
    await this.#sharing.publishFacts(this.lease.jobId);
  }

  protected override async onStopping(graceMs: number): Promise<void> {
    await this.#sharing.stop(this.lease.jobId).catch(() => {});
    await super.onStopping(graceMs);
  }

  override async start(): Promise<void> {
    this.#offLocal = this.wakeUps.onLocal((topic) => this.#wakeUp(topic));
    await super.start();
  }

  override async stop(graceMs?: number): Promise<void> {
    this.#offLocal();
    await this.#timetables.stop();
    await super.stop(graceMs);
    // Last: a turn in flight may have set them.
    if (this.#dueTimer) clearTimeout(this.#dueTimer);
    if (this.#queuedTimer) clearTimeout(this.#queuedTimer);
  }

  /** Also for queued runs: peers may have left them to this job's free slots. */
  protected override onReleased(): void {
    for (const topic of ["jobs", "runs"] as const) this.wakeUps.sendToOthers(topic);
  }

  /** Resolves when the last of the `runs` has ended, with its callbacks. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** Callbacks without an owner were stored: adopts them before the next sweep. */
  requestCallbacks(): void {
    this.#requestRead({ callbacks: true });
  }

  protected override async collect(): Promise<ClaimedRun[]> {
    const look = this.#pendingReads;
    this.#pendingReads = NOTHING;
    try {
      if (look.peers) this.hasPeers = (await liveDrivers(this.database, this.lease.jobId)).length > 0;
      if (look.pools) await this.refreshPools();
      if (look.paused) await this.#checkOwned();
      if (look.callbacks) await this.adoptCallbacks();
      if (look.continuous) await planContinuous(this.database, this.dags);
      if (look.timetables) this.#timetables.poll();
      if (look.abandoned) await this.#cancelAbandoned();
      if (look.due) await this.#createDue();
      let claimed = await this.#claim({ ...look, queued: look.queued || this.#pendingReads.queued });
      if (look.places) claimed = await this.#makeWay(claimed);
      this.#budget?.add(claimed);
      // If loading them fails, the next heartbeat finds them.
      if (claimed.length > 0) this.#untilSweep = 0;
      return claimed;
    } catch (error) {
      this.#pendingReads = EVERYTHING;
      throw error;
    }
  }

  protected override async turn(): Promise<void> {
    await super.turn();
    if (this.hasPeers && this.state === "running" && this.lease.isTrusted())
      await this.#sharing.rebalance(this.lease.jobId);
  }

  protected override async onHeartbeat(): Promise<void> {
    // A draining scheduler offers no slots, and its facts show the drain.
    if (this.hasPeers && this.state === "running") await this.#sharing.beat(this.lease.jobId);
    if (this.state === "running") await this.#sharing.publishFacts(this.lease.jobId);
    const dead = await this.lease.expireOthers();
    for (const job of dead) {
      this.logger.warn("a component died", { ...job });
      // Its work is free: triggerers and other schedulers need not wait for their next sweep.
      this.wakeUps.send("jobs");
    }
    const isSweep =
      this.lease.consumeLapse() || dead.length > 0 || !this.isListening || --this.#untilSweep <= 0;
    if (isSweep) this.#untilSweep = SWEEP_EVERY;
    if (isSweep) this.requestPolls("");
    if (isSweep) this.#pendingReads = EVERYTHING;
    if (isSweep) await dropUnreadReports(this.database);
    // The backfill host in this process does not sweep by itself.
    if (isSweep) this.wakeUps.sendHere("backfills");
    if (this.lease.someoneLeft) this.wakeUps.sendHere("jobs");
    // In case a wake-up was lost. No query while no gate is closed.
    this.requestGates();
    // The last callback may have ended.
    if (this.#budget?.isSpent) this.#pendingReads = { ...this.#pendingReads, queued: true };
  }

  protected override onLeaseLost(): void {
    super.onLeaseLost();
    this.#pendingReads = EVERYTHING;
  }

  protected override onRunEnded(actor: RunActor): void {
    // The effects of its end, e.g. the start of the next queued run of its DAG, are left to peers.
    if (this.state !== "running") this.wakeUps.sendToOthers(`run:${actor.id}`);
    this.#pendingReads = { ...this.#pendingReads, queued: true };
    this.#isUntold = true;
    if (actor.version.manifest.schedule.kind === "continuous") {
      void planContinuous(this.database, this.dags)
        .then(() => (this.state === "running" ? this.#wakeUp("dags") : this.wakeUps.sendToOthers("dags")))
        .catch(() => {});
    }
    if (hasSubDags(actor.version.manifest)) this.#pendingReads = { ...this.#pendingReads, abandoned: true };
    if (actor.version.manifest.pauseAfterFailures !== undefined) this.#pauseIfFailing(actor);
    // Also received in this process: by API clients that wait for the run.
    this.wakeUps.send("ended");
    this.wake();
  }

  protected override onWaitingForPast(): void {
    this.#requestRead({ places: true });
  }

  protected override onStored(batch: RunBatch): void {
    this.wakeUps.sendHere("tasks");
    if (batch.signals.length > 0) this.wakeUps.send("states");
    if (this.hasPeers && endsPast(batch, this.actors)) this.wakeUps.sendToOthers("ended");
    this.announceFreedSlots(batch);
  }

  async #checkOwned(): Promise<void> {
    await this.#sharing.readOffer(this.lease.jobId);
    await this.checkOwnedRuns();
  }

  /** If this fails, it is checked again before the DAG's next scheduled run is created. */
  #pauseIfFailing({ run: { dag_id: dagId } }: RunActor): void {
    void pauseAfterFailures(this.database, dagId)
      .then((isPaused) => {
        if (isPaused) this.#logPaused([dagId]);
      })
      .catch(() => {});
  }

  #requestRead(look: Partial<Reads>): void {
    this.#pendingReads = { ...this.#pendingReads, ...look };
    this.wake();
  }

  /** A cancelled run may have sub-DAGs itself. If this fails, the next sweep finds them; nothing else waits for it. */
  async #cancelAbandoned(): Promise<void> {
    const { database, logger, wakeUps } = this;
    try {
      if (await cancelAbandoned({ database, logger, wakeUps })) this.#requestRead({ abandoned: true });
    } catch (error) {
      logger.warn("cannot cancel the run of a sub-DAG", { error: String(error) });
    }
  }

  #logPaused(dagIds: readonly string[]): void {
    this.logger.warn("paused after failures", { dags: dagIds });
    this.wakeUps.send("dags");
    this.wakeUps.send("signals");
  }

  /** With peers: as many runs as fill its free slots; none if only peers have free slots; its share if no scheduler has. */
  async #claim({ orphans, queued }: Pick<Reads, "orphans" | "queued">): Promise<ClaimedRun[]> {
    this.#pendingReads = { ...this.#pendingReads, queued: false };
    if (!orphans && !queued) return [];
    const budget = (await this.#budget?.room(this.lease.jobId)) ?? Number.POSITIVE_INFINITY;
    if (this.#budget?.isSpent && !this.load.callbacks.areUnderWay) this.#finished.resolve();
    const room = this.hasPeers ? this.#sharing.room : Number.POSITIVE_INFINITY;
    const waiting = room <= 0 ? await this.#sharing.waiting(this.lease.jobId) : undefined;
    if (waiting === null && this.#isUntold)
      for (const topic of ["runs", "jobs"] as const) this.wakeUps.sendToOthers(topic);
    this.#isUntold = false;
    if (queued) await this.#armQueued();
    if (waiting === null) return [];
    const usual = this.hasPeers ? SHARED_CLAIM_LIMIT : CLAIM_LIMIT;
    const limit = budget > 0 ? Math.min(usual, budget) : usual;
    const slots = Number.isFinite(room) && room > 0 ? room : undefined;
    const most = Math.min(limit, slots ?? limit);
    const mayTake = orphans && budget > 0 && this.lease.mayJudge();
    const taken = mayTake ? await takeOverRuns(this.database, this.lease.jobId, most, this.dags) : [];
    if (taken.length > 0) this.logger.info("took over runs", { runs: taken.length, job: this.lease.jobId });
    // The runs that were taken over are evaluated first: they may need the free slots.
    const mayStart = queued && taken.length === 0 && !(waiting && this.#sharing.isLeft(waiting));
    const started = mayStart ? await this.#startQueued({ limit, slots, waiting }, budget > 0) : [];
    const [hasMoreOrphans, hasMoreQueued] = [leavesMore(taken, most), leavesMore(started, limit)];
    if (hasMoreQueued && waiting) this.#sharing.leaveRest(() => this.#requestRead({ queued: true }));
    if (hasMoreOrphans || hasMoreQueued || (queued && taken.length > 0)) {
      this.#pendingReads = {
        ...this.#pendingReads,
        queued: true,
        orphans: this.#pendingReads.orphans || hasMoreOrphans,
      };
      this.#isUntold = true;
      this.wake();
    }
    return [...taken, ...started];
  }

  async #createDue(): Promise<void> {
    // One step per turn: a long backlog must not delay reports and the heartbeat.
    const { dags, created, paused, asked } = await createDueRuns(
      this.database,
      planner,
      DUE_LIMIT,
      this.dags,
    );
    if (paused.length > 0) this.#logPaused(paused);
    if (asked > 0) this.#timetables.poll();
    if (created > 0) this.#pendingReads = { ...this.#pendingReads, queued: true };
    if (created > 0) this.#isUntold = true;
    if (created > 0) this.wakeUps.send("states");
    if (created > 0) this.wakeUps.sendHere("notices");
    if (dags > 0) return this.#requestRead({ due: true });
    if (this.#dueTimer) clearTimeout(this.#dueTimer);
    const wait = await nextDueIn(this.database, this.dags);
    if (wait === null) return;
    this.#dueTimer = setTimeout(
      () => this.#requestRead({ due: true }),
      Math.min(wait > 0 ? wait + 1 : BUSY_MS, 2 ** 30),
    );
  }

  /** `any` false: only runs that were started by tasks of its own runs. */
  async #startQueued(amount: StartAmount, any: boolean): Promise<ClaimedRun[]> {
    const started = await startQueuedRuns(this.database, {
      ...amount,
      jobId: this.lease.jobId,
      dags: this.dags,
      isOfOwnRuns: !any,
      columns: this.columns,
    });
    // A DAG with a full backlog gets its next scheduled run when a queued one has started.
    if (started.length > 0) this.#requestRead({ due: true });
    if (started.length > 0) this.wakeUps.send("states");
    return started;
  }

  /** Sets the timer for queued runs that are not due yet. */
  async #armQueued(): Promise<void> {
    const next = await nextQueuedAt(this.database, this.dags);
    if (this.#queuedTimer) clearTimeout(this.#queuedTimer);
    if (next) {
      const wait = Math.max(next.getTime() - this.lease.now(), 0) + 1;
      this.#queuedTimer = setTimeout(() => this.#wakeUp("runs"), Math.min(wait, 2 ** 30));
    }
  }

  /** After the start: a run that was started does not need the slot of another. */
  async #makeWay(claimed: readonly ClaimedRun[]): Promise<ClaimedRun[]> {
    const exchange = await makeWay(this.database, {
      jobId: this.lease.jobId,
      dags: this.dags,
      isOfOwnRuns: this.#budget !== null,
      columns: this.columns,
    });
    // Their former owners, possibly this job, drop them.
    for (const id of exchange.wentBack) this.wakeUps.send(`run:${id}`);
    if (exchange.started.length > 0) this.wakeUps.send("states");
    return afterExchange(claimed, exchange);
  }

  protected override onWakeUp(topic: Topic | ""): void {
    if (concernsHosts(topic)) this.wakeUps.sendHere(topic);
    else this.#wakeUp(topic);
  }

  #wakeUp(topic: Topic | ""): void {
    const isRequested = this.requestPolls(topic);
    // The first two are the most frequent topics, and have no other meaning here. The others are for the hosts.
    if (["states", "moves", "backfills", "notices"].includes(topic)) return;
    if (topic === "slots") {
      this.#sharing.peerHasRoom();
      return;
    }
    // More may have changed than the topic says.
    this.#untilSweep = 0;
    if (isRequested) return;
    switch (topic) {
      case "ended":
        this.requestGates();
        return;
      case "callbacks":
        this.requestCallbacks();
        return;
      case "unwaited":
        this.#requestRead({ abandoned: true });
        return;
      case "triggers":
      case "tasks":
        return;
      default:
        if (isRunTopic(topic)) {
          this.markStale(runOf(topic));
          // A finished run may have been marked or deleted.
          this.requestGates();
        }
    }
    this.#requestRead(readsAfter(topic));
  }
}

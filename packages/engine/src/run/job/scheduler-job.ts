/**
 * The scheduler: a DagRunJob that creates the runs schedules ask for and collects every active run there is. Any
 * number of them may run against one database.
 *
 * It looks at the database only when there is a reason: a wake-up (a run was created, a DAG changed, slots freed), a
 * timer for the next due moment, a run of its own that ended and made room, or the heartbeat: one that finds that a job
 * has left looks for what is left of it, and every fifth repeats all of it in case a wake-up got lost.
 */
import { type Topic, tellsOfStates } from "../../job/wake-up.ts";
import { planner } from "../../model/calendar/planner.ts";
import { pauseAfterFailures } from "../../store/dag/failure-pause.ts";
import type { Listening } from "../../store/database/database.ts";
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
import { afterExchange, makeWay } from "../../store/run/run-places.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import { cancelAbandoned, hasSubDags } from "./abandoned-runs.ts";
import type { DagRunJobOptions } from "./dag-run-job-options.ts";
import { DrainingJob } from "./draining-job.ts";
import { endsPast } from "./gates.ts";
import { compareOwned } from "./owned-runs.ts";
import { RunBudget } from "./run-budget.ts";
import { RunSharing } from "./run-sharing.ts";
import { concernsHosts, EVERYTHING, isRunTopic, type Look, lookFor, NOTHING } from "./scheduler-look.ts";

/** Runs taken in one go: enough to be quick, few enough to leave some to other schedulers. */
const CLAIM_LIMIT = 64;
const SHARED_CLAIM_LIMIT = 16;
const DUE_LIMIT = 200;
/** A DAG that is due and locked by somebody else is looked at again after this long. */
const BUSY_MS = 100;
/** While nothing is heard, every so many heartbeats look at everything. */
export const SWEEP_EVERY = 5;

export interface SchedulerJobOptions extends DagRunJobOptions {
  /** After so many runs that it owned have ended, it is `finished` and owns none. Left out: never. */
  readonly runs?: number | undefined;
  /** Asks the timetables of bundles for their next runs. @param onPlanned A DAG has a new plan. */
  readonly timetables: (onPlanned: () => void) => Timetables;
}

export interface Timetables {
  /** There may be timetables to ask. */
  look(): void;
  stop(): Promise<void>;
}

export class SchedulerJob extends DrainingJob {
  #look: Look = EVERYTHING;
  #dueTimer: NodeJS.Timeout | null = null;
  #queuedTimer: NodeJS.Timeout | null = null;
  #listening: Listening | null = null;
  /** Heartbeats until the next that looks at everything. */
  #untilSweep = 0;
  #offLocal: () => void = () => {};
  readonly #timetables: Timetables;
  readonly #sharing: RunSharing;
  /** There may be runs to claim that nobody has told the peers of. */
  #isUntold = false;
  readonly #budget: RunBudget | null;
  readonly #finished = Promise.withResolvers<void>();

  constructor(options: SchedulerJobOptions) {
    super("scheduler", options);
    const { database, runs } = options;
    this.#budget = runs === undefined ? null : new RunBudget(database, runs);
    this.#timetables = options.timetables(() => this.#lookAt({ due: true }));
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
    this.#listening = await this.wakeUps.listen((topic) => {
      if (concernsHosts(topic)) this.wakeUps.tellHere(topic);
      else this.#wakeUp(topic);
    });
    await super.start();
  }

  override async stop(graceMs?: number): Promise<void> {
    this.#offLocal();
    await this.#listening?.close();
    await this.#timetables.stop();
    await super.stop(graceMs);
    // Last: a turn that was under way may have set them.
    if (this.#dueTimer) clearTimeout(this.#dueTimer);
    if (this.#queuedTimer) clearTimeout(this.#queuedTimer);
  }

  /** Queued runs, too: others may have left them to this job's free slots. */
  protected override onReleased(): void {
    for (const topic of ["jobs", "runs"] as const) this.wakeUps.tellOthers(topic);
  }

  /** Resolves when the last of the `runs` has ended, with its callbacks. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  /** Callbacks that no job owns have been stored: adopt them now, and not at the next sweep. */
  lookForCallbacks(): void {
    this.#lookAt({ callbacks: true });
  }

  protected override async collect(): Promise<ClaimedRun[]> {
    const look = this.#look;
    this.#look = NOTHING;
    try {
      if (look.peers) this.hasPeers = (await liveDrivers(this.database, this.lease.jobId)).length > 0;
      if (look.pools) await this.refreshPools();
      if (look.paused) await this.#checkOwned();
      if (look.callbacks) await this.adoptCallbacks();
      if (look.continuous) await planContinuous(this.database, this.dags);
      if (look.timetables) this.#timetables.look();
      if (look.abandoned) await this.#cancelAbandoned();
      if (look.due) await this.#createDue();
      let claimed = await this.#claim({ ...look, queued: look.queued || this.#look.queued });
      if (look.places) claimed = await this.#makeWay(claimed);
      this.#budget?.add(claimed);
      // Should loading them fail, the next heartbeat finds them.
      if (claimed.length > 0) this.#untilSweep = 0;
      return claimed;
    } catch (error) {
      this.#look = EVERYTHING;
      throw error;
    }
  }

  protected override async turn(): Promise<void> {
    await super.turn();
    if (this.hasPeers && this.state === "running" && this.lease.isTrusted())
      await this.#sharing.settle(this.lease.jobId);
  }

  protected override async onHeartbeat(): Promise<void> {
    // The row of one that drains offers nothing, and its facts say that it drains.
    if (this.hasPeers && this.state === "running") await this.#sharing.beat(this.lease.jobId);
    if (this.state === "running") await this.#sharing.publishFacts(this.lease.jobId);
    const dead = await this.lease.buryOthers();
    for (const job of dead) {
      this.logger.warn("a component died", { ...job });
      // What it had is free: triggerers and other schedulers need not wait for their own look.
      this.wakeUps.send("jobs");
    }
    const isSweep =
      this.lease.takeLapse() || dead.length > 0 || !this.#listening?.isUp || --this.#untilSweep <= 0;
    if (isSweep) this.#untilSweep = SWEEP_EVERY;
    if (isSweep) this.askFired();
    if (isSweep) this.askSignals();
    if (isSweep) this.#look = EVERYTHING;
    // Whoever looks after backfills in this process does not ask by itself.
    if (isSweep) this.wakeUps.tellHere("backfills");
    if (this.lease.someoneLeft) this.wakeUps.tellHere("jobs");
    // In case a wake-up got lost. Asks nothing while no gate is closed.
    this.askGates();
    // The last callback may have ended.
    if (this.#budget?.isSpent) this.#look = { ...this.#look, queued: true };
  }

  protected override onLeaseLost(): void {
    super.onLeaseLost();
    this.#look = EVERYTHING;
  }

  protected override onRunEnded(actor: RunActor): void {
    // What follows from its end, e.g. the next queued run of its DAG, is for others to start.
    if (this.state !== "running") this.wakeUps.tellOthers(`run:${actor.id}`);
    this.#look = { ...this.#look, queued: true };
    this.#isUntold = true;
    if (actor.version.manifest.schedule.kind === "continuous") {
      void planContinuous(this.database, this.dags)
        .then(() => (this.state === "running" ? this.#wakeUp("dags") : this.wakeUps.tellOthers("dags")))
        .catch(() => {});
    }
    if (hasSubDags(actor.version.manifest)) this.#look = { ...this.#look, abandoned: true };
    if (actor.version.manifest.pauseAfterFailures !== undefined) this.#pauseIfFailing(actor);
    // Heard in this process, too: by clients of the API that wait for the run.
    this.wakeUps.send("ended");
    this.wake();
  }

  protected override onWaitingForPast(): void {
    this.#lookAt({ places: true });
  }

  protected override onStored(batch: RunBatch): void {
    this.wakeUps.tellHere("tasks");
    if (batch.signals.length > 0) this.wakeUps.send("states");
    if (!this.hasPeers) return;
    if (endsPast(batch, this.actors)) this.wakeUps.tellOthers("ended");
    if (batch.slots.values().some((delta) => delta < 0)) this.wakeUps.tellOthers("pools");
  }

  /** What the database says of our runs, against memory: edits and pauses whose wake-up got lost show here. */
  async #checkOwned(): Promise<void> {
    await this.#sharing.readOffer(this.lease.jobId);
    const { stale, paused } = await compareOwned(this.database, this.lease.jobId, this.actors);
    for (const id of stale) this.markStale(id);
    for (const [actor, isPaused] of paused) this.setPaused(actor, isPaused);
  }

  /** Should it fail, the same is asked before the DAG's next scheduled run is made. */
  #pauseIfFailing({ run: { dag_id: dagId } }: RunActor): void {
    void pauseAfterFailures(this.database, dagId)
      .then((isPaused) => {
        if (isPaused) this.#tellPaused([dagId]);
      })
      .catch(() => {});
  }

  #lookAt(look: Partial<Look>): void {
    this.#look = { ...this.#look, ...look };
    this.wake();
  }

  /** What was cancelled may have sub-DAGs of its own. Should it fail, the next sweep finds them; nothing else waits for it. */
  async #cancelAbandoned(): Promise<void> {
    const { database, logger, wakeUps } = this;
    try {
      if (await cancelAbandoned({ database, logger, wakeUps })) this.#lookAt({ abandoned: true });
    } catch (error) {
      logger.warn("could not cancel the run of a sub-DAG", { error: String(error) });
    }
  }

  #tellPaused(dagIds: readonly string[]): void {
    this.logger.warn("paused after failures", { dags: dagIds });
    this.wakeUps.send("dags");
    this.wakeUps.send("signals");
  }

  /** With peers no more than fill its free slots; if only peers have some, nothing; if no scheduler has, its share of what waits. */
  async #claim({ orphans, queued }: Pick<Look, "orphans" | "queued">): Promise<ClaimedRun[]> {
    this.#look = { ...this.#look, queued: false };
    if (!orphans && !queued) return [];
    const budget = (await this.#budget?.room(this.lease.jobId)) ?? Number.POSITIVE_INFINITY;
    if (this.#budget?.isSpent && !this.load.callbacks.areUnderWay) this.#finished.resolve();
    const room = this.hasPeers ? this.#sharing.room : Number.POSITIVE_INFINITY;
    const waiting = room <= 0 ? await this.#sharing.waiting(this.lease.jobId) : undefined;
    if (waiting === null && this.#isUntold)
      for (const topic of ["runs", "jobs"] as const) this.wakeUps.tellOthers(topic);
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
    // Those that were taken over first show how many slots they leave.
    const mayStart = queued && taken.length === 0 && !(waiting && this.#sharing.isLeft(waiting));
    const started = mayStart ? await this.#startQueued({ limit, slots, waiting }, budget > 0) : [];
    const [hasMoreOrphans, hasMoreQueued] = [leavesMore(taken, most), leavesMore(started, limit)];
    if (hasMoreQueued && waiting) this.#sharing.leaveRest(() => this.#lookAt({ queued: true }));
    if (hasMoreOrphans || hasMoreQueued || (queued && taken.length > 0)) {
      this.#look = { ...this.#look, queued: true, orphans: this.#look.orphans || hasMoreOrphans };
      this.#isUntold = true;
      this.wake();
    }
    return [...taken, ...started];
  }

  async #createDue(): Promise<void> {
    // One step a turn: a long backlog must not keep reports and the heartbeat waiting.
    const { dags, created, paused, asked } = await createDueRuns(
      this.database,
      planner,
      DUE_LIMIT,
      this.dags,
    );
    if (paused.length > 0) this.#tellPaused(paused);
    if (asked > 0) this.#timetables.look();
    if (created > 0) this.#look = { ...this.#look, queued: true };
    if (created > 0) this.#isUntold = true;
    if (created > 0) this.wakeUps.send("states");
    if (created > 0) this.wakeUps.tellHere("notices");
    if (dags > 0) return this.#lookAt({ due: true });
    if (this.#dueTimer) clearTimeout(this.#dueTimer);
    const wait = await nextDueIn(this.database, this.dags);
    if (wait === null) return;
    this.#dueTimer = setTimeout(
      () => this.#lookAt({ due: true }),
      Math.min(wait > 0 ? wait + 1 : BUSY_MS, 2 ** 30),
    );
  }

  /** `any` false: only runs that tasks of its own runs started. */
  async #startQueued(amount: StartAmount, any: boolean): Promise<ClaimedRun[]> {
    const started = await startQueuedRuns(this.database, {
      ...amount,
      jobId: this.lease.jobId,
      dags: this.dags,
      isOfOwnRuns: !any,
      columns: async (tx, versionId) => (await this.versions.get(tx, versionId)).columns,
    });
    // A DAG with a full backlog gets its next scheduled run when one of them has started.
    if (started.length > 0) this.#lookAt({ due: true });
    if (started.length > 0) this.wakeUps.send("states");
    return started;
  }

  /** For runs that are not due yet. */
  async #armQueued(): Promise<void> {
    const next = await nextQueuedAt(this.database, this.dags);
    if (this.#queuedTimer) clearTimeout(this.#queuedTimer);
    if (next) {
      const wait = Math.max(next.getTime() - this.lease.now(), 0) + 1;
      this.#queuedTimer = setTimeout(() => this.#wakeUp("runs"), Math.min(wait, 2 ** 30));
    }
  }

  /** After the start: what has found room needs nobody's place. */
  async #makeWay(claimed: readonly ClaimedRun[]): Promise<ClaimedRun[]> {
    const exchange = await makeWay(this.database, {
      jobId: this.lease.jobId,
      dags: this.dags,
      isOfOwnRuns: this.#budget !== null,
      columns: async (tx, versionId) => (await this.versions.get(tx, versionId)).columns,
    });
    // Dropped by whoever had them, ourselves included.
    for (const id of exchange.wentBack) this.wakeUps.send(`run:${id}`);
    if (exchange.started.length > 0) this.wakeUps.send("states");
    return afterExchange(claimed, exchange);
  }

  #wakeUp(topic: Topic | ""): void {
    if (tellsOfStates(topic)) this.askSignals("states");
    // The first is the most frequent of all topics, and means nothing else here. The others are for the hosts.
    if (topic === "states" || topic === "backfills" || topic === "notices") return;
    if (topic === "slots") {
      this.#sharing.peerHasRoom();
      return;
    }
    // What happened may be more than the topic says.
    this.#untilSweep = 0;
    switch (topic) {
      case "ended":
        this.askGates();
        return;
      case "fired":
        this.askFired();
        return;
      case "signals":
        this.askSignals();
        return;
      case "callbacks":
        this.lookForCallbacks();
        return;
      case "unwaited":
        this.#lookAt({ abandoned: true });
        return;
      case "triggers":
      case "tasks":
        return;
      case "":
        this.askFired();
        this.askSignals();
        break;
      default:
        if (isRunTopic(topic)) {
          this.markStale(Number(topic.slice("run:".length)));
          // A run that has ended may have been marked or deleted.
          this.askGates();
        }
    }
    this.#lookAt(lookFor(topic));
  }
}

/**
 * The scheduler: a DagRunJob that creates the runs schedules ask for and collects every active run there is. Any
 * number of them may run against one database.
 *
 * It looks at the database only when there is a reason: a wake-up (a run was created, a DAG changed, slots freed), a
 * timer for the next due moment, a run of its own that ended and made room, or the heartbeat: one that finds that a job
 * has left looks for what is left of it, and every fifth repeats all of it in case a wake-up got lost.
 */
import { type Topic, tellsOfStates } from "../signal/wake-up.ts";
import type { Listening } from "../store/database.ts";
import { createDueRuns, nextDueIn, planContinuous } from "../store/due-runs.ts";
import { pauseAfterFailures } from "../store/failure-pause.ts";
import { liveDrivers } from "../store/job-lease.ts";
import type { RunBatch } from "../store/run-batch.ts";
import {
  type ClaimedRun,
  leavesMore,
  nextQueuedAt,
  startQueuedRuns,
  takeOverRuns,
} from "../store/run-claim.ts";
import { afterExchange, makeWay } from "../store/run-places.ts";
import { cancelAbandoned, hasSubDags } from "./abandoned-runs.ts";
import { DagRunJob } from "./dag-run-job.ts";
import type { DagRunJobOptions } from "./dag-run-job-options.ts";
import { compareOwned } from "./owned-runs.ts";
import { planNext } from "./planner.ts";
import type { RunActor } from "./run-actor.ts";
import { TimetableDesk } from "./timetable-desk.ts";

/** Runs taken in one go: enough to be quick, few enough to leave some to other schedulers. */
const CLAIM_LIMIT = 64;
const SHARED_CLAIM_LIMIT = 16;
const DUE_LIMIT = 200;
/** A DAG that is due and locked by somebody else is looked at again after this long. */
const BUSY_MS = 100;
/** While nothing is heard, every so many heartbeats look at everything. */
export const SWEEP_EVERY = 5;

/** What there is a reason to look at in the database. */
interface Look {
  readonly due: boolean;
  readonly queued: boolean;
  readonly places: boolean;
  readonly orphans: boolean;
  readonly pools: boolean;
  readonly paused: boolean;
  readonly peers: boolean;
  readonly callbacks: boolean;
  readonly continuous: boolean;
  readonly timetables: boolean;
  readonly abandoned: boolean;
}

const NOTHING: Look = {
  due: false,
  queued: false,
  places: false,
  orphans: false,
  pools: false,
  paused: false,
  peers: false,
  callbacks: false,
  continuous: false,
  timetables: false,
  abandoned: false,
};
const EVERYTHING: Look = {
  due: true,
  queued: true,
  places: true,
  orphans: true,
  pools: true,
  paused: true,
  peers: true,
  callbacks: true,
  continuous: true,
  timetables: true,
  abandoned: true,
};

export class SchedulerJob extends DagRunJob {
  #look: Look = EVERYTHING;
  #dueTimer: NodeJS.Timeout | null = null;
  #queuedTimer: NodeJS.Timeout | null = null;
  #listening: Listening | null = null;
  /** Heartbeats until the next that looks at everything. */
  #untilSweep = 0;
  #offLocal: () => void = () => {};
  readonly #timetables: TimetableDesk;

  constructor(options: DagRunJobOptions) {
    super("scheduler", options);
    const { database, bundles, logger } = options;
    const onPlanned = () => this.#lookForDue();
    this.#timetables = new TimetableDesk({ database, bundles, logger, onPlanned });
  }

  override async start(): Promise<void> {
    this.#offLocal = this.wakeUps.onLocal((topic) => this.#wakeUp(topic));
    this.#listening = await this.wakeUps.listen((topic) => {
      // Passed on to whoever looks after backfills in this process.
      if (topic === "backfills" || topic === "jobs") this.wakeUps.tellHere(topic);
      else this.#wakeUp(topic);
    });
    await super.start();
    this.wakeUps.tellOthers("jobs");
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

  /** Callbacks that nobody owns have been stored: one takes them now, and not at its next sweep. */
  lookForCallbacks(): void {
    this.#look = { ...this.#look, callbacks: true };
    this.wake();
  }

  protected override async collect(): Promise<ClaimedRun[]> {
    const look = this.#look;
    this.#look = NOTHING;
    try {
      if (look.peers) this.hasPeers = (await liveDrivers(this.database, this.lease.jobId)).length > 0;
      if (look.pools) await this.refreshPools();
      if (look.paused) await this.#checkOwned();
      if (look.callbacks) await this.adoptCallbacks();
      if (look.continuous) await planContinuous(this.database);
      if (look.timetables) this.#timetables.look();
      if (look.abandoned) await this.#cancelAbandoned();
      if (look.due) await this.#createDue();
      let claimed: ClaimedRun[] = [];
      if (look.orphans && this.lease.mayJudge())
        claimed.push(...(await takeOverRuns(this.database, this.lease.jobId, this.#claimLimit)));
      if (look.orphans && claimed.length > 0)
        this.logger.info("took over runs", { runs: claimed.length, job: this.lease.jobId });
      if (look.queued || this.#look.queued) {
        this.#look = { ...this.#look, queued: false };
        claimed.push(...(await this.#startQueued()));
      }
      if (look.places) claimed = await this.#makeWay(claimed);
      // Should loading them fail, the next heartbeat finds them.
      if (claimed.length > 0) this.#untilSweep = 0;
      if (leavesMore(claimed, this.#claimLimit)) {
        this.#look = { ...this.#look, queued: true, orphans: look.orphans };
        this.wake();
      }
      return claimed;
    } catch (error) {
      this.#look = EVERYTHING;
      throw error;
    }
  }

  protected override async onHeartbeat(): Promise<void> {
    const dead = await this.lease.buryOthers();
    for (const job of dead) {
      this.logger.warn("a component died", { ...job });
      // What it had is free: triggerers and other schedulers need not wait for their own look.
      this.wakeUps.send("jobs");
    }
    const isSweep = dead.length > 0 || !this.#listening?.isUp || --this.#untilSweep <= 0;
    if (isSweep) this.#untilSweep = SWEEP_EVERY;
    if (isSweep) this.askFired();
    if (isSweep) this.askSignals();
    if (isSweep) this.#look = EVERYTHING;
    // Whoever looks after backfills in this process does not ask by itself.
    if (isSweep) this.wakeUps.tellHere("backfills");
    if (this.lease.someoneLeft) this.wakeUps.tellHere("jobs");
    // Tasks of another scheduler's run open gates without a wake-up. Asks nothing while none is closed.
    this.askGates();
  }

  protected override onLeaseLost(): void {
    super.onLeaseLost();
    this.#look = EVERYTHING;
  }

  protected override onRunEnded(actor: RunActor): void {
    this.#look = { ...this.#look, queued: true };
    if (actor.version.manifest.schedule.kind === "continuous") {
      void planContinuous(this.database)
        .then(() => this.#wakeUp("dags"))
        .catch(() => {});
    }
    if (hasSubDags(actor.version.manifest)) this.#look = { ...this.#look, abandoned: true };
    if (actor.version.manifest.pauseAfterFailures !== undefined) this.#pauseIfFailing(actor);
    // Heard in this process, too: by clients of the API that wait for the run.
    this.wakeUps.send("ended");
    this.wake();
  }

  protected override onStored(batch: RunBatch): void {
    this.wakeUps.tellHere("tasks");
    if (batch.signals.length > 0) this.wakeUps.send("states");
    const isCut = batch.waitEnds.some(({ kind }) => kind === "timeout" || kind === "cancelled");
    if (isCut && [...this.actors.values()].some((actor) => hasSubDags(actor.version.manifest)))
      this.#lookForAbandoned();
    if (!this.hasPeers) return;
    for (const delta of batch.slots.values()) {
      if (delta < 0) {
        this.wakeUps.tellOthers("pools");
        return;
      }
    }
  }

  /** What the database says of our runs, against memory: edits and pauses whose wake-up got lost show here. */
  async #checkOwned(): Promise<void> {
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

  #lookForAbandoned(): void {
    this.#look = { ...this.#look, abandoned: true };
    this.wake();
  }

  /** What was cancelled may have sub-DAGs of its own. Should it fail, the next sweep finds them; nothing else waits for it. */
  async #cancelAbandoned(): Promise<void> {
    const { database, logger, wakeUps } = this;
    try {
      if (await cancelAbandoned({ database, logger, wakeUps })) this.#lookForAbandoned();
    } catch (error) {
      logger.warn("could not cancel the run of a sub-DAG", { error: String(error) });
    }
  }

  #tellPaused(dagIds: readonly string[]): void {
    this.logger.warn("paused after failures", { dags: dagIds });
    this.wakeUps.send("dags");
    this.wakeUps.send("signals");
  }

  get #claimLimit(): number {
    return this.hasPeers ? SHARED_CLAIM_LIMIT : CLAIM_LIMIT;
  }

  async #createDue(): Promise<void> {
    // One step a turn: a long backlog must not keep reports and the heartbeat waiting.
    const { dags, created, paused, asked } = await createDueRuns(this.database, planNext, DUE_LIMIT);
    if (paused.length > 0) this.#tellPaused(paused);
    if (asked > 0) this.#timetables.look();
    if (created > 0) this.#look = { ...this.#look, queued: true };
    if (created > 0) this.wakeUps.send("states");
    if (dags > 0) {
      this.#look = { ...this.#look, due: true };
      return this.wake();
    }
    if (this.#dueTimer) clearTimeout(this.#dueTimer);
    const wait = await nextDueIn(this.database);
    if (wait === null) return;
    this.#dueTimer = setTimeout(() => this.#lookForDue(), Math.min(wait > 0 ? wait + 1 : BUSY_MS, 2 ** 30));
  }

  async #startQueued(): Promise<ClaimedRun[]> {
    const started = await startQueuedRuns(this.database, {
      jobId: this.lease.jobId,
      limit: this.#claimLimit,
      columns: async (tx, versionId) => (await this.versions.get(tx, versionId)).columns,
    });
    // A DAG with a full backlog gets its next scheduled run when one of them has started.
    if (started.length > 0) this.#lookForDue();
    if (started.length > 0) this.wakeUps.send("states");
    const next = await nextQueuedAt(this.database);
    if (this.#queuedTimer) clearTimeout(this.#queuedTimer);
    if (next) {
      const wait = Math.max(next.getTime() - this.lease.now(), 0) + 1;
      this.#queuedTimer = setTimeout(() => this.#wakeUp("runs"), Math.min(wait, 2 ** 30));
    }
    return started;
  }

  /** After the start: what has found room needs nobody's place. */
  async #makeWay(claimed: readonly ClaimedRun[]): Promise<ClaimedRun[]> {
    const exchange = await makeWay(this.database, {
      jobId: this.lease.jobId,
      columns: async (tx, versionId) => (await this.versions.get(tx, versionId)).columns,
    });
    // Dropped by whoever had them, ourselves included.
    for (const id of exchange.wentBack) this.wakeUps.send(`run:${id}`);
    if (exchange.started.length > 0) this.wakeUps.send("states");
    return afterExchange(claimed, exchange);
  }

  #lookForDue(): void {
    this.#look = { ...this.#look, due: true };
    this.wake();
  }

  #wakeUp(topic: Topic | ""): void {
    if (tellsOfStates(topic)) this.askSignals("states");
    // The one is the most frequent of all, and nothing to us but that; the other is for those who look after them.
    if (topic === "states" || topic === "backfills") return;
    // What happened may be more than the topic says.
    this.#untilSweep = 0;
    switch (topic) {
      case "runs":
        this.#look = { ...this.#look, queued: true };
        break;
      case "dags":
        this.#look = { ...this.#look, due: true, queued: true, paused: true, timetables: true };
        break;
      case "pools":
        this.#look = { ...this.#look, pools: true };
        break;
      case "jobs":
        this.#look = { ...this.#look, peers: true, orphans: true };
        break;
      case "ended":
        this.askGates();
        return;
      case "fired":
        this.askFired();
        return;
      case "signals":
        this.askSignals();
        return;
      case "triggers":
      case "tasks":
        return;
      case "":
        this.#look = EVERYTHING;
        this.askFired();
        this.askSignals();
        break;
      default:
        this.markStale(Number(topic.slice("run:".length)));
        this.#look = { ...this.#look, queued: true, places: true, due: true, abandoned: true };
    }
    this.wake();
  }
}

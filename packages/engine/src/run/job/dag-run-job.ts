/**
 * The one loop that drives runs: collect runs, process events, admit, store, dispatch, heartbeat. A `SchedulerJob`
 * collects every active run, a backfill and a `SubmittedRunsJob` only their own; all runs are driven in the same way.
 *
 * Batches are sequential: no actor changes while its transaction is in flight. Reports wait in the mailbox.
 *
 * If a commit fails, its actors are dropped and loaded again, and its reports are applied again. Reports that were stored
 * although the answer was lost then name superseded attempts, and are ignored.
 */
import { hostname } from "node:os";
import type { AttemptReport, Executor, ExecutorEvent } from "../../execute/contract.ts";
import { JobLoop } from "../../job/job-loop.ts";
import { Mailbox } from "../../job/mailbox.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import { type AttemptOutcome, OCCUPYING } from "../../model/index.ts";
import { type Database, sqlState } from "../../store/database/database.ts";
import type { JobKind } from "../../store/job/job-lease.ts";
import type { ServedDags } from "../../store/job/served-dags.ts";
import { recountPools } from "../../store/pool/pool-occupancy.ts";
import { type ClaimedRun, rereadRuns } from "../../store/run/run-claim.ts";
import {
  batchCalls,
  POOL_FULL,
  type RunBatch,
  settledPools,
  startingSignals,
} from "../../store/task/run-batch.ts";
import type { Admitted } from "../admit/admission.ts";
import { type AttemptAdoption, readAdoption } from "../batch/attempt-adoption.ts";
import { buildBatch, changesOf, isEmpty, runEnds, sendNews, storedRows } from "../batch/batch-builder.ts";
import { applyReports, type Gathered } from "../batch/reports.ts";
import type { StartingSignals } from "../dispatch/dispatcher.ts";
import { noTraces, type RunActor, type Traces } from "../loaded/run-actor.ts";
import { goOnEnding } from "../loaded/run-ending.ts";
import { loadActors } from "../loaded/run-loader.ts";
import { beginRetries, recordRetries } from "../loaded/run-retries.ts";
import { VersionCache } from "../loaded/version-cache.ts";
import { type DagRunJobOptions, INFRA_LOSS_BUDGET, LEASE, leaseListener } from "./dag-run-job-options.ts";
import { JobParts } from "./job-parts.ts";
import { isRefusal } from "./poison-reports.ts";
import type { OwnLoad } from "./run-sharing.ts";

/** Maximum number of admission rounds of a batch because of full pools. */
const MAX_ROUNDS = 5;
const HOST = hostname();
const CHECK_VIOLATION = "23514";
const HOST_GONE: AttemptOutcome = { kind: "lost", reason: "the process that ran it is gone" };

export abstract class DagRunJob extends JobLoop {
  protected readonly database: Database;
  protected readonly wakeUps: WakeUps;
  protected readonly dags: ServedDags;
  protected readonly versions = new VersionCache();
  protected readonly actors = new Map<number, RunActor>();
  /** Other jobs of this kind are alive: pools are shared with them. */
  protected hasPeers = false;
  readonly #options: DagRunJobOptions;
  readonly #mailbox: Mailbox<AttemptReport>;
  readonly #parts: JobParts;
  /** Runs to load again before the next decision. */
  readonly #stale = new Set<number>();

  constructor(kind: JobKind, options: DagRunJobOptions) {
    const { dags = null, version } = options;
    const [who, mailbox] = [
      { kind, hostname: HOST, pid: process.pid, version, dags },
      new Mailbox<AttemptReport>(),
    ];
    super(options.database, who, { logger: options.logger, times: options.lease ?? LEASE, mailbox });
    this.#mailbox = mailbox;
    this.database = options.database;
    this.wakeUps = options.wakeUps;
    this.dags = dags;
    this.lease.onExtended = leaseListener(options);
    this.#options = options;
    this.#parts = new JobParts(options, {
      mailbox,
      actors: this.actors,
      versions: this.versions,
      lease: this.lease,
      logger: this.logger,
      isRunning: () => this.state === "running",
    });
  }

  /** Claims new runs for this job; called at every turn of the loop. */
  protected abstract collect(): Promise<ClaimedRun[]>;
  /** The end of a run is stored. */
  protected abstract onRunEnded(actor: RunActor): void;
  /** A batch is stored: other jobs may be notified. */
  protected abstract onStored(batch: RunBatch): void;
  /** A run only waits for earlier runs of its DAG. */
  protected abstract onWaitingForPast(): void;

  get #executors(): readonly Executor[] {
    const { executors, foreign } = this.#options;
    return foreign ? [...executors, foreign] : executors;
  }

  protected override async onStart(): Promise<void> {
    for (const executor of this.#executors) await executor.start((event) => this.#receive(event));
    await this.#parts.admission.pools.refresh();
  }

  protected override async onStopping(graceMs: number): Promise<void> {
    await Promise.all(this.#executors.map((executor) => executor.stop(graceMs)));
    this.#parts.timers.disarm();
    this.#parts.driving.feed.stop();
    await this.#parts.waitEnds.close();
  }

  /** Cancels all attempts and drops all runs: other jobs may own them. */
  protected override onLeaseLost(): void {
    this.#parts.activeAttempts.leaveAll("the scheduler lost its lease");
    for (const actor of [...this.actors.values()]) this.#forget(actor);
    this.#stale.clear();
    this.#parts.admission.reset();
    this.#parts.activeAttempts.removeEnded(this.#mailbox.drain());
    this.#parts.storedReports.reset();
  }

  /** The load of this job, which is shared with its peers. */
  protected get load(): OwnLoad {
    const [admission, callbacks, activeAttempts] = [
      this.#parts.admission,
      this.#parts.callbacks,
      this.#parts.activeAttempts,
    ];
    const [executors, stale] = [this.#options.executors, this.#stale];
    return { admission, callbacks, executors, activeAttempts, stale, drop: (actor) => this.#forget(actor) };
  }

  /** The run may have been edited: load it again before the next decision. */
  markStale(runId: number): void {
    this.#stale.add(runId);
    this.#mailbox.wake();
  }

  /** Another process may have changed the size or occupancy of pools. */
  protected refreshPools(): Promise<void> {
    return this.#parts.admission.pools.refresh();
  }

  /** Running tasks of a paused DAG continue; no other task is started. */
  protected setPaused(actor: RunActor, isPaused: boolean): void {
    if (actor.isPaused === isPaused) return;
    actor.isPaused = isPaused;
    this.#parts.admission.setPaused(actor, isPaused);
    this.#mailbox.wake();
  }

  /** Adopts callbacks of dead jobs, and those that this job could not submit. */
  protected async adoptCallbacks(): Promise<void> {
    const adopted = await this.#parts.callbacks.adopt(this.lease.jobId);
    // Workers may have reported their ends to a dead job.
    if (adopted > 0) this.#parts.storedReports.requestRead();
  }

  /** Workers may have stored reports. */
  protected requestReports(): void {
    this.#parts.storedReports.requestRead();
    this.#mailbox.wake();
  }

  /** Triggers of our runs may have fired. */
  protected requestFired(): void {
    this.#parts.waits.requestRead();
    this.#mailbox.wake();
  }

  /** Signals may have been sent; "states": by the engine itself. */
  protected requestSignals(topic: "signals" | "states" = "signals"): void {
    this.#parts.driving.feed.requestRead(topic);
  }

  /** An earlier run that an instance waits for may have changed. */
  protected requestGates(): void {
    this.#parts.gates.requestRead();
    if (this.#parts.gates.isDue) this.#mailbox.wake();
  }

  #receive(event: ExecutorEvent): void {
    if (event.type === "started") this.#mailbox.postPatiently(event, event.attempt);
    else if (event.type === "ended") this.#mailbox.post(event, event.attempt);
    else if (event.type === "reactionEnded") this.#parts.driving.answered(event);
    else if (event.type === "callbackEnded") void this.#parts.callbacks.ended(event.callbackId, event.error);
    else if (this.#parts.admission.isWaiting()) this.#mailbox.wake();
  }

  /** One turn: loads new and stale runs, then stores one batch. */
  protected override async turn(): Promise<void> {
    const traces = noTraces();
    const claimed = this.state === "running" ? await this.collect() : [];
    const touched = new Set(await this.#loadRuns(claimed, traces));
    await this.#parts.storedReports.read(this.lease.jobId);
    const reports = this.#mailbox.drain(this.#parts.poison.limit);
    await this.#store({ touched, reports, traces }, async () => {
      const fired = await this.#parts.waits.readFired(this.lease.jobId);
      await this.#parts.driving.read();
      applyReports(reports, this.#parts.reporting, { touched, traces });
      this.#parts.waits.applyFired(fired, { touched, traces, now: this.lease.now() });
      for (const wait of fired) this.#parts.dispatcher.cacheWait(wait);
      this.#parts.timers.fire(this.lease.now(), touched, traces);
      this.#parts.driving.apply({ touched, traces, now: this.lease.now() });
    });
    if (this.#parts.waits.isDue) this.#mailbox.wake();
    const due = this.#parts.timers.drainDueRuns((id) => this.markStale(id));
    await beginRetries(this.database, this.lease.jobId, due);
    if (this.state === "running" || this.state === "draining") this.#parts.timers.arm(this.lease.now());
  }

  /** Applies events, opens gates, admits, commits, then handles the effects of the commit. */
  async #store(batch: Gathered, apply: () => Promise<void>): Promise<void> {
    const { touched } = batch;
    try {
      await apply();
      await this.#parts.expanding.expand(touched, batch.traces.outputs, this.lease.now());
      await this.#parts.gates.open(this.database, touched, this.lease.now());
      for (const actor of touched) this.#parts.admission.addReady(actor, this.lease.now());
      await this.#commit(batch);
    } catch (error) {
      this.#parts.waits.drainLastLines();
      await this.#undo(batch, error);
      return;
    }
    this.#parts.waitEnds.write(this.#parts.waits.drainLastLines());
    this.#parts.driving.committed(touched);
    const kept = [...touched].filter((actor) => this.actors.get(actor.id) === actor);
    for (const actor of kept) this.#parts.timers.schedule(actor);
    if (kept.some((actor) => actor.onlyWaitsForPast)) this.onWaitingForPast();
  }

  /** After a full pool it chooses again with current numbers; the last round stores the events without admissions. */
  async #commit({ touched, reports, traces }: Gathered): Promise<void> {
    for (let round = 1; ; round++) {
      const isLast = round === MAX_ROUNDS;
      const mayAdmit = !isLast && this.state === "running" && this.lease.isTrusted();
      const isAwaited =
        mayAdmit && this.hasPeers && (await this.#parts.admission.peerWaiters.invite(this.lease.jobId));
      if (isLast) this.#mailbox.wake();
      const admitted = mayAdmit ? this.#parts.admission.admit(this.lease.now(), touched) : [];
      const begunWithSlots = this.#parts.waits.begin({ touched, traces, now: this.lease.now() });
      const parts = [...touched].map(changesOf);
      const ends = runEnds(parts, this.lease.now());
      const owner = { jobId: this.lease.jobId, hostname: HOST, onFailure: this.#options.onFailure ?? [] };
      const rows = storedRows(reports, this.actors);
      const batch = buildBatch(owner, parts, { traces, ...ends, reports: rows });
      const news = this.hasPeers ? this.#parts.admission.newsOfWaiting(this.lease.jobId) : null;
      if (isEmpty(batch)) {
        if (news) await this.database.pipeline([news]);
        return this.#commitReports(reports);
      }
      try {
        const calls = batchCalls(batch);
        const results = await this.database.pipeline(news ? [...calls, news] : calls);
        this.#parts.admission.pools.commit(settledPools(batch, results));
        if (isAwaited) this.wakeUps.sendToOthers("pools");
        this.#commitReports(reports);
        return this.#committed(batch, admitted, startingSignals(batch, results));
      } catch (error) {
        if (sqlState(error) !== POOL_FULL || isLast || begunWithSlots) throw error;
        for (const { actor, ...part } of parts) actor.model.restoreChanges(part.changes, part);
        this.#parts.admission.withdraw(admitted, this.lease.now());
        await this.#parts.admission.pools.refresh();
      }
    }
  }

  #committed(batch: RunBatch, admitted: readonly Admitted[], signals: StartingSignals): void {
    for (const { fromAttempt, instance, runId } of batch.instances) {
      if (instance.state === "success")
        this.#parts.dispatcher.forget(runId, instance.node.id, instance.mapIndex);
      // Ended without a report, because the run timed out: the process still runs.
      if (fromAttempt !== null && !OCCUPYING.has(instance.state))
        this.#parts.activeAttempts.cancel(fromAttempt, "the run timed out");
    }
    for (const output of batch.outputs)
      if (output.key === "return_value") this.#parts.dispatcher.remember(output);
    this.#dispatch(admitted, signals);
    recordRetries(this.actors, batch.retries);
    for (const { runId } of batch.ends) {
      const actor = this.actors.get(runId);
      if (!actor) continue;
      this.#parts.activeAttempts.endRun(runId);
      this.#forget(actor);
      this.onRunEnded(actor);
    }
    if (batch.callbacks.length > 0)
      void this.#parts.callbacks.submit(batch.callbacks.map((callback) => callback.id));
    if (batch.instances.length > 0) this.requestGates();
    sendNews(this.wakeUps, batch);
    this.onStored(batch);
  }

  #commitReports(reports: readonly AttemptReport[]): void {
    this.#parts.activeAttempts.removeEnded(reports);
    this.#parts.storedReports.forget(reports);
    this.#parts.poison.passed(reports);
  }

  /** The process may have slept before the answer of the commit: other jobs may own these runs, so load them first. */
  #dispatch(admitted: readonly Admitted[], signals: StartingSignals): void {
    if (!this.lease.isTrusted()) {
      for (const { actor } of admitted) this.markStale(actor.id);
      return;
    }
    this.#parts.activeAttempts.add(admitted);
    this.#parts.dispatcher.dispatch(admitted, signals);
  }

  /** The batch was rejected, or its outcome is unknown: drops the decisions of these actors and loads them again. */
  async #undo({ touched, reports }: Gathered, error: unknown): Promise<void> {
    const state = sqlState(error) ?? "";
    this.#parts.admission.reset();
    for (const actor of touched) this.#stale.add(actor.id);
    const again = state === CHECK_VIOLATION ? null : this.#parts.poison.refused(reports, state, error);
    for (const report of again ?? reports) this.#mailbox.post(report, report.attempt);
    if (state === CHECK_VIOLATION) {
      this.logger.error("slots of a pool were miscounted, counting again", { error: String(error) });
      await recountPools(this.database);
    } else if (again === null && !isRefusal(state)) throw error;
    this.logger.debug("batch rejected", { reason: state });
    this.#mailbox.wake();
  }

  /** Loads claimed and stale runs as actors, and makes all decisions that their stored rows allow. */
  async #loadRuns(claimed: readonly ClaimedRun[], traces: Traces): Promise<RunActor[]> {
    const actors = await this.#load(claimed);
    const adoption = await this.#adoptionOf(actors);
    for (const actor of actors) {
      this.actors.set(actor.id, actor);
      const at = this.lease.now();
      actor.model.start(at);
      goOnEnding(actor, at);
      this.#parts.driving.add(actor, at);
      if (actor.run.is_fresh) continue;
      this.#parts.waits.requestRead();
      this.#parts.dispatcher.forgetRun(actor);
      this.#parts.admission.limitedTasks.load(actor);
      adoption.adopt(actor);
      for (const instance of this.#parts.activeAttempts.reconcile(actor)) {
        const lossBudget = this.#options.infraLossBudget ?? INFRA_LOSS_BUDGET;
        if (actor.end(instance, HOST_GONE, { traces, at, lossBudget }))
          this.#parts.admission.freed(actor, instance);
      }
    }
    if (actors.some(({ version }) => version.hasDeadlines)) this.wakeUps.send("notices");
    return actors;
  }

  /** If the remote attempts cannot be read, the runs are loaded again: without them, running attempts would count as lost. */
  async #adoptionOf(actors: readonly RunActor[]): Promise<AttemptAdoption> {
    const parts = { activeAttempts: this.#parts.activeAttempts, executors: this.#parts.admission.executors };
    try {
      const adoption = await readAdoption(this.database, actors, {
        ...parts,
        awaited: this.#parts.driving.pendingReactions(),
      });
      if (adoption.size > 0) this.#parts.storedReports.requestRead();
      return adoption;
    } catch (error) {
      for (const { id } of actors) this.#stale.add(id);
      throw error;
    }
  }

  /** Reads the owner and the rows of stale runs. If that fails, they stay stale. */
  async #load(claimed: readonly ClaimedRun[]): Promise<RunActor[]> {
    const stale = new Set(this.#stale);
    this.#stale.clear();
    for (const { id } of claimed) stale.delete(id);
    for (const id of [...stale, ...claimed.map((run) => run.id)]) this.#forget(this.actors.get(id));
    try {
      const again = stale.size > 0 ? await rereadRuns(this.database, this.lease.jobId, [...stale]) : [];
      if (stale.size > 0) await this.#parts.admission.pools.refresh();
      const runs = [...again, ...claimed];
      const actors = runs.length > 0 ? await loadActors(this.database, this.versions, runs) : [];
      for (const { id } of again) stale.delete(id);
      for (const id of stale)
        this.#parts.activeAttempts.leaveRun(id, "the run has ended or has another owner");
      return actors;
    } catch (error) {
      for (const id of stale) this.#stale.add(id);
      throw error;
    }
  }

  #forget(actor: RunActor | undefined): void {
    if (!actor) return;
    this.#parts.admission.drop(actor);
    this.#parts.expanding.drop(actor);
    this.#parts.gates.drop(actor);
    this.#parts.driving.drop(actor);
    this.#parts.dispatcher.forgetRun(actor);
    this.actors.delete(actor.id);
  }
}

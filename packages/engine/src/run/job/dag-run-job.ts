/**
 * The one loop that drives runs: collect runs, process events, admit, store, dispatch, heartbeat. A `SchedulerJob`
 * collects every active run, a backfill and a `SubmittedRunsJob` only their own; how a run is driven does not differ.
 *
 * Batches follow each other: no actor changes while a transaction about it is in flight. Reports wait in the mailbox.
 *
 * If a commit fails, its actors are dropped and loaded again, and its reports are applied once more. Reports that were
 * stored after all (the answer was lost) then name attempts that are no longer current, and are ignored.
 */
import { hostname } from "node:os";
import type { AttemptReport, ExecutorEvent } from "../../execute/contract.ts";
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
import { Admission, type Admitted } from "../admit/admission.ts";
import { ActiveAttempts } from "../batch/active-attempts.ts";
import { buildBatch, changesOf, isEmpty, runEnds } from "../batch/batch-builder.ts";
import { sendNews } from "../batch/batch-news.ts";
import { applyReports, type Gathered, type ReportsContext } from "../batch/reports.ts";
import { Callbacks } from "../dispatch/callbacks.ts";
import { Dispatcher, type StartingSignals, undispatchable } from "../dispatch/dispatcher.ts";
import { LargeLengths } from "../dispatch/large-lengths.ts";
import { Driving } from "../drive/driving.ts";
import { Expanding, type Recall } from "../loaded/expanding.ts";
import { noTraces, type RunActor, type Traces } from "../loaded/run-actor.ts";
import { goOnEnding } from "../loaded/run-ending.ts";
import { loadActors } from "../loaded/run-loader.ts";
import { beginRetries, noteRetries } from "../loaded/run-retries.ts";
import { VersionCache } from "../loaded/version-cache.ts";
import { WaitEndLog } from "../loaded/wait-ends.ts";
import { Waits } from "../loaded/waits.ts";
import { type DagRunJobOptions, INFRA_LOSS_BUDGET, LEASE, leaseListener } from "./dag-run-job-options.ts";
import { Gates } from "./gates.ts";
import { isRefusal, PoisonReports } from "./poison-reports.ts";
import type { OwnLoad } from "./run-sharing.ts";
import { Timers } from "./timers.ts";

/** How often one batch chooses again because a pool was full. */
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
  readonly #activeAttempts = new ActiveAttempts();
  readonly #admission: Admission;
  readonly #dispatcher: Dispatcher;
  readonly #callbacks: Callbacks;
  readonly #expanding: Expanding;
  readonly #gates = new Gates();
  readonly #poison = new PoisonReports(this.logger);
  readonly #waits: Waits;
  readonly #waitEnds: WaitEndLog;
  readonly #timers: Timers;
  readonly #driving: Driving;
  readonly #reporting: ReportsContext;
  /** Runs to read again before anything else is decided about them. */
  readonly #stale = new Set<number>();

  constructor(kind: JobKind, options: DagRunJobOptions) {
    const { dags = null, version } = options;
    const [who, mailbox] = [
      { kind, hostname: HOST, pid: process.pid, version, dags },
      new Mailbox<AttemptReport>(),
    ];
    super(options.database, who, { logger: options.logger, times: options.lease ?? LEASE, bell: mailbox });
    this.#mailbox = mailbox;
    this.database = options.database;
    this.wakeUps = options.wakeUps;
    this.dags = dags;
    this.lease.onExtended = leaseListener(options);
    this.#options = options;
    this.#admission = new Admission(options.executors, {
      database: options.database,
      activeAttempts: this.#activeAttempts,
      unsubmitted: (executor) => this.#dispatcher.waiting(executor),
      unstoredEnds: () => mailbox.items.filter(({ type }) => type === "ended").length,
    });
    this.#waits = new Waits(options.database, this.#admission, this.actors);
    const [wake, actors] = [() => mailbox.wake(), this.actors];
    this.#timers = new Timers({ actors, admission: this.#admission, waits: this.#waits, onDue: wake });
    const shared = {
      database: this.database,
      bundles: options.bundles,
      logsDir: options.logsDir,
      logger: this.logger,
      lengths: options.lengths ?? new LargeLengths(),
    };
    const recall: Recall = (...output) => this.#dispatcher.recall(...output);
    this.#expanding = new Expanding({ ...shared, recall, wake, maxMapLength: options.maxMapLength });
    this.#waitEnds = new WaitEndLog(options.logsDir, this.logger);
    this.#callbacks = new Callbacks({ ...shared, executor: options.executors[0], dags });
    const hands = { activeAttempts: this.#activeAttempts, admission: this.#admission };
    const [executor] = options.executors;
    this.#driving = new Driving({ ...shared, ...hands, executor, wakeUps: options.wakeUps, wake });
    this.#reporting = { ...hands, actors: this.actors, fromLocal: (at) => this.lease.fromLocal(at) };
    this.#dispatcher = new Dispatcher({
      ...shared,
      lease: this.lease,
      isWanted: (attempt) => this.#activeAttempts.isWanted(attempt) && this.state === "running",
      dropped: (attempt) => this.#answer(attempt, { kind: "cancelled" }),
      failed: (attempt, error) => this.#answer(attempt, undispatchable(error)),
    });
  }

  /** New runs for this job, already claimed in its name; called at every turn of the loop. */
  protected abstract collect(): Promise<ClaimedRun[]>;
  /** A run reached its end and was stored. */
  protected abstract onRunEnded(actor: RunActor): void;
  /** A batch is durable: whatever others wait for may be told. */
  protected abstract onStored(batch: RunBatch): void;
  /** A run does nothing any more but wait for the past of its DAG. */
  protected abstract onWaitingForPast(): void;

  protected override async onStart(): Promise<void> {
    for (const executor of this.#options.executors) await executor.start((event) => this.#hear(event));
    await this.#admission.refreshPools();
  }

  protected override async onStopping(graceMs: number): Promise<void> {
    await Promise.all(this.#options.executors.map((executor) => executor.stop(graceMs)));
    this.#timers.disarm();
    this.#driving.stop();
    await this.#waitEnds.close();
  }

  /** Kills what runs, forgets every run: others have them. */
  protected override onLeaseLost(): void {
    this.#activeAttempts.cancelAll("the scheduler lost its lease");
    for (const actor of [...this.actors.values()]) this.#forget(actor);
    this.#stale.clear();
    this.#admission.reset();
    this.#activeAttempts.settle(this.#mailbox.take());
  }

  /** What is shared with other jobs of this kind. */
  protected get load(): OwnLoad {
    const [admission, callbacks, activeAttempts] = [this.#admission, this.#callbacks, this.#activeAttempts];
    const [executors, stale] = [this.#options.executors, this.#stale];
    return { admission, callbacks, executors, activeAttempts, stale, drop: (actor) => this.#forget(actor) };
  }

  /** The run may have been edited: read it again before the next decision. */
  markStale(runId: number): void {
    this.#stale.add(runId);
    this.#mailbox.wake();
  }

  /** Pool sizes or occupancy may have changed elsewhere. */
  protected refreshPools(): Promise<void> {
    return this.#admission.refreshPools();
  }

  /** Tasks of a paused DAG that are under way go on; no other is started. */
  protected setPaused(actor: RunActor, isPaused: boolean): void {
    if (actor.isPaused === isPaused) return;
    actor.isPaused = isPaused;
    this.#admission.setPaused(actor, isPaused);
    this.#mailbox.wake();
  }

  /** Callbacks that a dead job left behind, or that this one could not submit. */
  protected adoptCallbacks(): Promise<void> {
    return this.#callbacks.adopt(this.lease.jobId);
  }

  /** Triggers of our runs may have fired. */
  protected askFired(): void {
    this.#waits.ask();
    this.#mailbox.wake();
  }

  /** Signals may have been sent; "states": by the engine itself. */
  protected askSignals(topic: "signals" | "states" = "signals"): void {
    this.#driving.ask(topic);
  }

  /** The past of some waiting instance may have changed. */
  protected askGates(): void {
    this.#gates.ask();
    if (this.#gates.isDue) this.#mailbox.wake();
  }

  #answer(attempt: string, outcome: AttemptOutcome): void {
    this.#mailbox.post({ type: "ended", attempt, at: Date.now(), outcome }, attempt);
  }

  #hear(event: ExecutorEvent): void {
    if (event.type === "started") this.#mailbox.postPatiently(event, event.attempt);
    else if (event.type === "ended") this.#mailbox.post(event, event.attempt);
    else if (event.type === "reactionEnded") this.#driving.answered(event);
    else if (event.type === "callbackEnded") void this.#callbacks.ended(event.callbackId, event.error);
    else if (this.#admission.isWaiting()) this.#mailbox.wake();
  }

  /** One turn: take new runs, read again what is stale, then one batch. */
  protected override async turn(): Promise<void> {
    const traces = noTraces();
    const claimed = this.state === "running" ? await this.collect() : [];
    const touched = new Set(await this.#take(claimed, traces));
    const reports = this.#mailbox.take(this.#poison.limit);
    await this.#store({ touched, reports, traces }, async () => {
      const fired = await this.#waits.readFired(this.lease.jobId);
      await this.#driving.read();
      applyReports(reports, this.#reporting, { touched, traces });
      this.#waits.applyFired(fired, { touched, traces, now: this.lease.now() });
      for (const wait of fired) this.#dispatcher.cacheWait(wait);
      this.#timers.fire(this.lease.now(), touched, traces);
      this.#driving.apply({ touched, traces, now: this.lease.now() });
    });
    if (this.#waits.isDue) this.#mailbox.wake();
    const due = this.#timers.takeDueRuns((id) => this.markStale(id));
    await beginRetries(this.database, this.lease.jobId, due);
    if (this.state === "running" || this.state === "draining") this.#timers.arm(this.lease.now());
  }

  /** What happened is applied, gates and admission follow, then the transaction, then what follows from it. */
  async #store(batch: Gathered, apply: () => Promise<void>): Promise<void> {
    const { touched } = batch;
    try {
      await apply();
      await this.#expanding.expand(touched, batch.traces.outputs, this.lease.now());
      await this.#gates.open(this.database, touched, this.lease.now());
      for (const actor of touched) this.#admission.note(actor, this.lease.now());
      await this.#commit(batch);
    } catch (error) {
      this.#waits.takeLastLines();
      await this.#undo(batch, error);
      return;
    }
    this.#waitEnds.write(this.#waits.takeLastLines());
    this.#driving.committed(touched);
    const kept = [...touched].filter((actor) => this.actors.get(actor.id) === actor);
    for (const actor of kept) this.#timers.note(actor);
    if (kept.some((actor) => actor.onlyWaitsForPast)) this.onWaitingForPast();
  }

  /** A full pool makes it choose again with fresh numbers; the last round stores what has happened, without admissions. */
  async #commit({ touched, reports, traces }: Gathered): Promise<void> {
    for (let round = 1; ; round++) {
      const isLast = round === MAX_ROUNDS;
      const mayAdmit = !isLast && this.state === "running" && this.lease.isTrusted();
      const isAwaited = mayAdmit && this.hasPeers && (await this.#admission.seeOthers(this.lease.jobId));
      if (isLast) this.#mailbox.wake();
      const admitted = mayAdmit ? this.#admission.admit(this.lease.now(), touched) : [];
      const begunWithSlots = this.#waits.begin({ touched, traces, now: this.lease.now() });
      const parts = [...touched].map(changesOf);
      const ends = runEnds(parts, this.lease.now());
      const owner = { jobId: this.lease.jobId, hostname: HOST, onFailure: this.#options.onFailure ?? [] };
      const batch = buildBatch(owner, parts, { traces, ...ends });
      const news = this.hasPeers ? this.#admission.newsOfWaiting(this.lease.jobId) : null;
      if (isEmpty(batch)) {
        if (news) await this.database.pipeline([news]);
        return this.#settle(reports);
      }
      try {
        const calls = batchCalls(batch);
        const results = await this.database.pipeline(news ? [...calls, news] : calls);
        this.#admission.settle(settledPools(batch, results));
        if (isAwaited) this.wakeUps.tellOthers("pools");
        this.#settle(reports);
        return this.#committed(batch, admitted, startingSignals(batch, results));
      } catch (error) {
        if (sqlState(error) !== POOL_FULL || isLast || begunWithSlots) throw error;
        for (const { actor, ...part } of parts) actor.model.giveBack(part.changes, part);
        this.#admission.withdraw(admitted, this.lease.now());
        await this.#admission.refreshPools();
      }
    }
  }

  #committed(batch: RunBatch, admitted: readonly Admitted[], signals: StartingSignals): void {
    for (const write of batch.instances) {
      if (write.to === "success") this.#dispatcher.forget(write.runId, write.taskId, write.mapIndex);
      // Ended without a report of its own (the run timed out): the process is still there.
      if (write.fromAttempt !== null && !OCCUPYING.has(write.to))
        this.#activeAttempts.cancel(write.fromAttempt, "the run timed out");
    }
    for (const output of batch.outputs) if (output.key === "return_value") this.#dispatcher.remember(output);
    this.#dispatch(admitted, signals);
    noteRetries(this.actors, batch.retries);
    for (const { runId } of batch.ends) {
      const actor = this.actors.get(runId);
      if (!actor) continue;
      this.#forget(actor);
      this.onRunEnded(actor);
    }
    if (batch.callbacks.length > 0)
      void this.#callbacks.submit(batch.callbacks.map((callback) => callback.id));
    if (batch.instances.length > 0) this.askGates();
    sendNews(this.wakeUps, batch);
    this.onStored(batch);
  }

  #settle(reports: readonly AttemptReport[]): void {
    this.#activeAttempts.settle(reports);
    this.#poison.passed(reports);
  }

  /** The answer may have come after a long sleep: others may have these runs by now, so look first. */
  #dispatch(admitted: readonly Admitted[], signals: StartingSignals): void {
    if (!this.lease.isTrusted()) {
      for (const { actor } of admitted) this.markStale(actor.id);
      return;
    }
    this.#activeAttempts.take(admitted);
    this.#dispatcher.dispatch(admitted, signals);
  }

  /** The batch is void, or nobody knows: forget what these actors decided and read them again. */
  async #undo({ touched, reports }: Gathered, error: unknown): Promise<void> {
    const state = sqlState(error) ?? "";
    this.#admission.reset();
    for (const actor of touched) this.#stale.add(actor.id);
    const again = state === CHECK_VIOLATION ? null : this.#poison.refused(reports, state, error);
    for (const report of again ?? reports) this.#mailbox.post(report, report.attempt);
    if (state === CHECK_VIOLATION) {
      this.logger.error("a pool's slots were miscounted: counting again", { error: String(error) });
      await recountPools(this.database);
    } else if (again === null && !isRefusal(state)) throw error;
    this.logger.debug("a batch was refused", { reason: state });
    this.#mailbox.wake();
  }

  /** Makes actors of runs that were claimed, or have to be read again, and decides all that their journal allows. */
  async #take(claimed: readonly ClaimedRun[], traces: Traces): Promise<RunActor[]> {
    const actors = await this.#load(claimed);
    for (const actor of actors) {
      this.actors.set(actor.id, actor);
      const at = this.lease.now();
      actor.model.start(at);
      goOnEnding(actor, at);
      this.#driving.add(actor, at);
      if (actor.run.is_fresh) continue;
      this.#waits.ask();
      this.#dispatcher.forgetRun(actor);
      this.#admission.adopt(actor);
      for (const instance of this.#activeAttempts.reconcile(actor)) {
        const lossBudget = this.#options.infraLossBudget ?? INFRA_LOSS_BUDGET;
        if (actor.end(instance, HOST_GONE, { traces, at, lossBudget }))
          this.#admission.freed(actor, instance);
      }
    }
    if (actors.some(({ version }) => version.hasDeadlines)) this.wakeUps.send("notices");
    return actors;
  }

  /** Of those that are stale only the database knows the truth, and whose they are. Should it fail, they still are. */
  async #load(claimed: readonly ClaimedRun[]): Promise<RunActor[]> {
    const stale = new Set(this.#stale);
    this.#stale.clear();
    for (const { id } of claimed) stale.delete(id);
    for (const id of [...stale, ...claimed.map((run) => run.id)]) this.#forget(this.actors.get(id));
    try {
      const again = stale.size > 0 ? await rereadRuns(this.database, this.lease.jobId, [...stale]) : [];
      if (stale.size > 0) await this.#admission.refreshPools();
      const runs = [...again, ...claimed];
      const actors = runs.length > 0 ? await loadActors(this.database, this.versions, runs) : [];
      for (const { id } of again) stale.delete(id);
      for (const id of stale) this.#activeAttempts.cancelRun(id, "the run is over or owned by another");
      return actors;
    } catch (error) {
      for (const id of stale) this.#stale.add(id);
      throw error;
    }
  }

  #forget(actor: RunActor | undefined): void {
    if (!actor) return;
    this.#admission.drop(actor);
    this.#expanding.drop(actor);
    this.#gates.drop(actor);
    this.#driving.drop(actor);
    this.#dispatcher.forgetRun(actor);
    this.actors.delete(actor.id);
  }
}

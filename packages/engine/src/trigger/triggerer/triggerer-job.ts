/**
 * The triggerer: fires timed triggers when they are due, and runs the others in its trigger runner. Any number of
 * triggerers may work on one database; claims (store/trigger/trigger-claim.ts) and leases decide which runs what.
 *
 * A heartbeat proves that the triggers' own loop turns: while the loop is blocked the lease is not renewed, and other
 * triggerers take over. Every write of a triggerer is fenced by the rows it owns. So a triggerer that returns after its
 * lease expired does no harm: it finds that it no longer owns the rows, and stops their triggers.
 */
import { hostname } from "node:os";
import { JobLoop } from "../../job/job-loop.ts";
import { Mailbox } from "../../job/mailbox.ts";
import type { Topic, WakeUps } from "../../job/wake-up.ts";
import type { TriggerOutcome } from "../../model/index.ts";
import { type Database, isContended, type Listening } from "../../store/database/database.ts";
import { nextTimedRunIn, storeTimedRuns } from "../../store/plan/timed-schedules.ts";
import { deadOwners, postponeTriggers, releaseAllTriggers } from "../../store/trigger/trigger-claim.ts";
import { fireDueTimed } from "../../store/trigger/trigger-fire.ts";
import { nextColdIn, nextTimedIn, recordFacts } from "../../store/trigger/triggers.ts";
import type { RunnerReports } from "../contract.ts";
import { EngineTriggers, type Finding } from "../engine/engine-triggers.ts";
import { SignalWatch } from "../engine/signal-watch.ts";
import { BlockedTriggers } from "./blocked-triggers.ts";
import { Peers } from "./peers.ts";
import { PollNotes } from "./poll-records.ts";
import { PollSchedule } from "./poll-schedule.ts";
import { TriggerLog } from "./trigger-log.ts";
import { lastWord, TriggerOutcomeWriter } from "./trigger-outcome-writer.ts";
import { TriggerShard } from "./trigger-shard.ts";
import type { TriggererOptions } from "./triggerer-options.ts";
import {
  BUSY_MS,
  CLAIM_LIMIT,
  FAREWELL_MS,
  GIVEN_MS,
  HORIZON_MS,
  isDue,
  LEASE,
  LOOK_EVERY,
  POSTPONED_MS,
  STALL_MS,
  SWEEP_AT_MOST_MS,
  SWEEP_MS,
  TIMED_LIMIT,
} from "./triggerer-options.ts";
import { EVERYTHING, type PendingRead, readsAfter } from "./triggerer-reads.ts";

interface Report {
  readonly id: number;
  readonly outcome: TriggerOutcome;
  /** The trigger as it was held when it reported. */
  readonly trigger: ReturnType<TriggerShard["get"]>;
}

export class TriggererJob extends JobLoop {
  readonly #options: TriggererOptions;
  readonly #database: Database;
  readonly #wakeUps: WakeUps;
  readonly #mailbox: Mailbox<Report>;
  readonly #desk: TriggerOutcomeWriter;
  readonly #engine: EngineTriggers;
  readonly #signals: SignalWatch;
  readonly #shard: TriggerShard;
  readonly #log: TriggerLog;
  readonly #peers: Peers;
  readonly #reads: PollSchedule<PendingRead>;
  readonly #polled: PollNotes;
  #sweptAt = 0;
  #gaveAt = Number.NEGATIVE_INFINITY;
  #comparedAt = performance.now();
  readonly #blocked = new BlockedTriggers();
  #unclaimed = 0;
  #listening: Listening | null = null;
  #offLocal: () => void = () => {};
  #untilRead = 0;
  #isRunning = false;
  #isStalled = false;

  constructor(options: TriggererOptions) {
    const mailbox = new Mailbox<Report>(0);
    const who = {
      kind: "triggerer",
      hostname: hostname(),
      pid: process.pid,
      version: options.version,
    } as const;
    super(options.database, who, { logger: options.logger, times: options.lease ?? LEASE, mailbox });
    this.#options = options;
    this.#database = options.database;
    this.#wakeUps = options.wakeUps;
    this.#mailbox = mailbox;
    this.#reads = new PollSchedule(EVERYTHING, () => this.wake());
    this.#desk = new TriggerOutcomeWriter(options.database);
    this.#polled = new PollNotes(options.database);
    this.#engine = new EngineTriggers(options.database);
    this.#signals = new SignalWatch({
      ...{ database: options.database, logger: this.logger, engine: this.#engine, wakeUps: options.wakeUps },
      requestRead: (ms) => (ms === 0 ? this.#reads.now("signals") : this.#reads.later("signals", ms)),
      isDeaf: () => !this.#listening?.isUp,
      onFound: (findings) => this.#found(findings),
      onRuns: () => this.#wakeUps.send("runs"),
    });
    this.#log = new TriggerLog({ ...options, logger: this.logger });
    this.#shard = new TriggerShard({
      ...options,
      engine: this.#engine,
      log: this.#log,
      onFailed: (id, error) => this.#report(id, { kind: "failed", error }),
    });
    this.#peers = new Peers(options.database, { ...options, horizonMs: HORIZON_MS });
  }

  get jobId(): number {
    return this.lease.jobId;
  }

  /** How many triggers it runs now. */
  get size(): number {
    return this.#shard.size;
  }

  override async start(): Promise<void> {
    this.#offLocal = this.#wakeUps.onLocal((topic) => this.#wakeUp(topic));
    this.#listening = await this.#wakeUps.listen((topic) => this.#wakeUp(topic));
    await super.start();
  }

  override async stop(graceMs?: number): Promise<void> {
    this.#offLocal();
    await this.#listening?.close();
    const wasRunning = this.state === "running";
    await super.stop(graceMs);
    this.#reads.close();
    if (!wasRunning) return;
    await this.#log.close();
    // Wakes the other triggerers at once; if this fails, the end of the job does the same a little later.
    await releaseAllTriggers(this.#database, this.lease.jobId).catch((error) =>
      this.logger.warn("could not hand over", { error: String(error) }),
    );
  }

  protected override async onStart(): Promise<void> {
    const reports: RunnerReports = {
      outcome: (id, outcome) => this.#report(id, outcome),
      log: (id, level, message, fields) => this.#writeLog(id, { level, message, fields }),
      polled: (id) => this.#polled.add(id),
      ceased: (id) => this.#ceased(id),
      members: (id, fired) => this.#engine.progress.running(id, fired),
      blocked: (stall) => this.#onBlocked(stall),
      ignoredAbort: (ignored) => this.#log.ignoredAbort(ignored),
    };
    await this.#options.runner.start(reports);
    this.#isRunning = true;
    await this.#recordFacts();
  }

  /** Reported events are stored and acknowledged first: a stored event must not come again elsewhere. */
  protected override async onStopping(graceMs: number): Promise<void> {
    const deadline = performance.now() + graceMs;
    while (this.#mailbox.size + this.#desk.size > 0 && performance.now() < deadline) {
      this.wake();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    this.#isRunning = false;
    await this.#options.runner.close(Math.max(0, deadline - performance.now()));
  }

  protected override mayRenew(): boolean {
    if (!this.#isRunning) return true;
    const silentMs = performance.now() - this.#options.runner.progressAt();
    const wasStalled = this.#isStalled;
    this.#isStalled = silentMs >= (this.#options.stallMs ?? STALL_MS);
    if (this.#isStalled && !wasStalled)
      this.logger.error("the triggers make no progress: the lease is not renewed", { silentMs });
    return !this.#isStalled;
  }

  protected override async onHeartbeat(): Promise<void> {
    if (!this.lease.mayJudge()) {
      // Without a lease, others may have taken triggers over since the last comparison.
      this.#reads.add("compare");
      this.#polled.clear();
    }
    for (const job of await this.lease.expireOthers()) {
      this.logger.warn("a component died", { ...job });
      this.#wakeUps.send("jobs");
    }
    if (this.state !== "running") return;
    // On its own clock: sweeps are requested all the time, and would delay it forever.
    if (performance.now() - this.#comparedAt >= SWEEP_MS) this.#reads.add("compare");
    this.#polled.write(this.lease.jobId);
    if (this.#engine.progress.drainChange()) await this.#recordFacts();
    // Wake-ups report what is new. In case one was lost or its sender died, everything is polled periodically.
    if (this.#listening?.isUp && !this.lease.someoneLeft && --this.#untilRead > 0) return;
    this.#untilRead = LOOK_EVERY;
    this.#reads.add("timed", "claim", "engine", "sweep");
    this.#signals.changed();
    const found = await this.#peers.read(this.lease.jobId, this.#shard.size);
    this.#unclaimed = found.unclaimed;
    await this.#recordFacts();
    if (found.surplus > 0) await this.#release(found.surplus);
  }

  protected override onLeaseLost(): void {
    this.#mailbox.drain();
    this.#desk.clear();
    this.#shard.dropAll();
    this.#reads.addAll();
  }

  protected override async turn(): Promise<void> {
    for (const report of this.#mailbox.drain()) this.#receive(report);
    try {
      await this.#store();
      if (this.state !== "running") return;
      await this.#reads.runIfDue("timed", () => this.#fireTimed());
      await this.#reads.runIfDue("compare", () => this.#compare());
      await this.#reads.runIfDue("claim", () => this.#claim());
      await this.#reads.runIfDue("engine", () => this.#readPeers());
      await this.#reads.runIfDue("signals", () => this.#signals.read());
      await this.#reads.runIfDue("sweep", () => this.#sweep());
      this.#wakeUps.wantStates(this, this.#engine.waitsForSteps);
    } catch (error) {
      if (!isContended(error)) throw error;
      this.#reads.later("timed", BUSY_MS);
    }
  }

  #report(id: number, outcome: TriggerOutcome): void {
    this.#mailbox.post({ id, outcome, trigger: this.#shard.get(id) }, "");
  }

  /** The trigger was stopped after its report, and maybe claimed and started again: an acknowledgement would be for another event. */
  #receive({ id, outcome, trigger }: Report): void {
    if (trigger === undefined || this.#shard.get(id) !== trigger) return;
    const whole = this.#engine.merge(id, outcome);
    if (whole === null) return;
    if (trigger.dag_id === null) this.#desk.fire(id, whole);
    else if (whole.kind === "event") this.#desk.event(trigger, whole);
    else void this.#postpone(id, trigger.dag_id, whole);
  }

  #ceased(id: number): void {
    if (!this.#shard.get(id)?.dag_id) return;
    this.#desk.ceased(id);
    this.wake();
  }

  async #store(): Promise<void> {
    if (this.#desk.size === 0) return;
    const stored = await this.#desk.store(this.lease.jobId);
    for (const { id, waits, outcome } of stored.fired) this.#log.ended(id, waits, lastWord(outcome));
    const { runner } = this.#options;
    for (const id of stored.acknowledged) if (this.#engine.wantsAck(id)) runner.ack(id);
    const fired = stored.fired.map(({ id }) => id);
    for (const id of fired) this.#shard.forget(id);
    if (fired.length > 0)
      setTimeout(() => this.#isRunning && runner.stop(fired, "fired"), FAREWELL_MS).unref();
    this.#shard.drop(stored.lost, "moved");
    if (stored.fired.some(({ waits }) => waits.length > 0)) this.#wakeUps.send("fired");
    if (stored.runs > 0) this.#wakeUps.send("runs");
    if (fired.length > 0) this.#reads.add("claim");
    if (this.#desk.size > 0) this.wake();
  }

  async #fireTimed(): Promise<void> {
    let timed = await nextTimedIn(this.#database);
    if (isDue(timed)) {
      const { triggers, waits } = await fireDueTimed(this.#database, TIMED_LIMIT);
      if (waits > 0) this.#wakeUps.send("fired");
      if (triggers === TIMED_LIMIT) this.#reads.now("timed");
      timed = await nextTimedIn(this.#database);
    }
    let scheduled = await nextTimedRunIn(this.#database);
    if (isDue(scheduled)) {
      if ((await storeTimedRuns(this.#database)) > 0) this.#wakeUps.send("runs");
      scheduled = await nextTimedRunIn(this.#database);
    }
    const next = Math.min(timed ?? Number.POSITIVE_INFINITY, scheduled ?? Number.POSITIVE_INFINITY);
    // Still due: another triggerer has locked it, and is about to fire it.
    if (next !== Number.POSITIVE_INFINITY) this.#reads.later("timed", next > 0 ? next + 1 : BUSY_MS);
  }

  async #claim(): Promise<void> {
    // Under an expired lease, a claim would only be taken over again.
    if (!this.lease.isTrusted()) return;
    const resting = this.#gaveAt + GIVEN_MS - performance.now();
    if (resting > 0) return this.#reads.later("claim", resting);
    const { queues } = this.#options;
    const jobId = this.lease.jobId;
    const limit = Math.min(CLAIM_LIMIT, await this.#peers.portion(jobId, this.#shard.size));
    if (limit > 0) {
      const dead = this.lease.mayJudge() ? await deadOwners(this.#database, jobId) : [];
      const request = { jobId, queues, limit, horizonMs: HORIZON_MS, dead };
      const engineSize = this.#engine.size;
      const claimed = await this.#shard.claim(request).catch((error) => {
        // Triggers may have been claimed and are not here: the comparison finds them.
        this.#reads.add("compare");
        throw error;
      });
      if (this.#engine.size > engineSize) this.#reads.add("engine", "signals");
      if (claimed === limit) return this.#reads.now("claim");
    }
    const wait = await nextColdIn(this.#database, queues, HORIZON_MS);
    if (wait !== null) this.#reads.later("claim", Math.max(wait, 0) + 1);
  }

  async #readPeers(): Promise<void> {
    this.#found(await this.#engine.read());
    if (this.#desk.size > 0) this.#reads.now("engine");
  }

  #found(findings: readonly Finding[]): void {
    for (const finding of findings) {
      const { id } = finding;
      if (finding.kind === "outcome") this.#report(id, finding.outcome);
      else if (finding.kind === "run") this.#desk.run(id, finding.runId, finding.payload);
      else if (finding.kind === "complete") this.#polled.add(id);
      else this.#log.engine(id, "info", `There is no ${finding.what} yet; waiting for it, too.`);
    }
  }

  async #compare(): Promise<void> {
    this.#comparedAt = performance.now();
    await this.#shard.compare(this.lease.jobId);
  }

  async #sweep(): Promise<void> {
    const wait = this.#sweptAt + SWEEP_AT_MOST_MS - performance.now();
    if (wait > 0) return this.#reads.later("sweep", wait);
    this.#sweptAt = performance.now();
    const dropped = await this.#shard.sweep(this.lease.jobId);
    // Capacity is free now.
    if (dropped > 0) this.#reads.now("claim");
  }

  async #release(surplus: number): Promise<void> {
    this.#gaveAt = performance.now();
    const given = await this.#shard.release(this.lease.jobId, surplus).catch((error) => {
      // Stopped here, and still owned by this job: they would not run until the next comparison.
      this.#reads.add("compare");
      throw error;
    });
    if (given === 0) return;
    this.logger.info("released triggers to another triggerer", { triggers: given });
    await this.#recordFacts();
    this.#wakeUps.sendToOthers("triggers");
  }

  /** A schedule has no waiting task to notify: the failure is logged here, and the trigger restarts after a while. */
  async #postpone(id: number, dagId: string, outcome: TriggerOutcome): Promise<void> {
    const reason =
      outcome.kind === "failed"
        ? lastWord(outcome).message
        : "it ended, but as a schedule it can only yield events";
    this.logger.error("the trigger of a DAG's schedule failed", { dagId, reason, againInMs: POSTPONED_MS });
    this.#shard.drop([id], "stopped");
    await postponeTriggers(this.#database, this.lease.jobId, { ids: [id], delayMs: POSTPONED_MS }).catch(
      () => {
        // Still ours in the database, and not here: comparing takes it in again.
      },
    );
  }

  #writeLog(id: number, line: { level: ErrorLevel; message: string; fields: Fields }): void {
    const dagId = this.#shard.get(id)?.dag_id;
    if (dagId) this.logger[line.level](line.message, { dagId, ...line.fields });
    else this.#log.line(id, line.level, line.message, line.fields);
  }

  #onBlocked(stall: Parameters<RunnerReports["blocked"]>[0]): void {
    const { id, isFailed, kind, ms, stack } = this.#blocked.record(stall);
    this.logger.warn("a trigger blocked all others", { trigger: id, kind, ms, stack });
    if (id !== null && !isFailed)
      this.#log.engine(id, "warn", `The trigger blocked all others for ${Math.round(ms)} ms:\n${stack}`);
  }

  async #recordFacts(): Promise<void> {
    await recordFacts(this.#database, this.lease.jobId, {
      triggers: this.#shard.size,
      capacity: this.#options.capacity,
      queues: this.#options.queues,
      unclaimed: this.#unclaimed,
      ...this.#blocked.facts(),
      fired: this.#engine.progress.report(),
      ...this.#options.runner.crashes(),
      lagMs: Math.max(0, Math.round(performance.now() - this.#options.runner.progressAt())),
    });
  }

  #wakeUp(topic: Topic | ""): void {
    this.#signals.receive(topic);
    const looks = readsAfter(topic, this.#engine.waitsForSteps);
    if (looks.length === 0) return;
    this.#reads.add(...looks);
    this.wake();
  }
}

type ErrorLevel = Parameters<RunnerReports["log"]>[1];
type Fields = Parameters<RunnerReports["log"]>[3];

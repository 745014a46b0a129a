/**
 * One run in this process. The engine's model decides what is next; this class replaces scheduler, executor and
 * triggerer. On a virtual clock, time moves only when no work is running: to the next retry, tick or signal, or to the
 * end of the next wait. So a timeline is deterministic as long as the tasks are.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  compileGraph,
  deferralOf,
  expansionOf,
  type Instance,
  isDriven,
  RuleSet,
  RunModel,
  resultOfFired,
  resultOfTimeout,
  type SignalFacts,
} from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { DagManifest, TriggerCall } from "@tradewind/sdk/manifest";
import type { Program, RunFacts } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import { durationOption } from "../moment.ts";
import type { RunOptions } from "../options.ts";
import { RunResult } from "../result.ts";
import { Outside } from "../signal/outside.ts";
import { RecordedDrive } from "../signal/recorded-drive.ts";
import { Subscriptions } from "../signal/subscriptions.ts";
import { checkApprovals } from "../trigger/given-answers.ts";
import { ScriptedTriggers } from "../trigger/scripted-triggers.ts";
import { checkKeys } from "../trigger/trigger-keys.ts";
import { Waits } from "../trigger/waits.ts";
import { Admission } from "./admission.ts";
import { Attempts, stoppable } from "./attempts.ts";
import { Callbacks } from "./callbacks.ts";
import { type Clock, RealClock, VirtualClock } from "./clock.ts";
import { endless, stuck } from "./dead-end.ts";
import { InnerRuns, type Play } from "./inner-runs.ts";
import { Journal } from "./journal.ts";
import { Reports } from "./reports.ts";
import { Retries } from "./retries.ts";
import { confOf, runFacts, startOf } from "./run-facts.ts";
import { StepMemory } from "./step-memory.ts";

const NEVER = Number.POSITIVE_INFINITY;
const DAY_MS = 86_400_000;
/** The limit of tries per task: rules that start each other never end, and neither do ticks. */
const MAX_TRIES = 10_000;
/** The reason for closing a run that nothing else closes. */
const END_OF_TEST = "the end of the test";

export class InProcessRun {
  readonly #manifest: DagManifest;
  readonly #model: RunModel;
  readonly #journal: Journal;
  readonly #inner: InnerRuns;
  readonly #clock: Clock;
  readonly #memory = new StepMemory();
  readonly #waits: Waits;
  readonly #callbacks: Callbacks;
  readonly #attempts: Attempts;
  readonly #reports: Reports;
  readonly #retries: Retries;
  readonly #subscriptions: Subscriptions;
  readonly #outside: Outside;
  readonly #facts: RunFacts;
  readonly #conf: Json;
  readonly #admission: Admission;
  readonly #startedAt: number;
  readonly #deadline: number;
  /** When a run that is still open is closed. */
  readonly #closesAt: number;
  readonly #over = new AbortController();
  /** Tasks that may be stopped while they work. */
  readonly #stoppable: ReadonlySet<string>;
  /** Events that are not processed yet. */
  readonly #mailbox: (() => void | Promise<void>)[] = [];
  #wake: () => void = () => {};
  #attemptCount = 0;
  #isTimedOut = false;
  #closedBy: "idle" | "until" | null = null;
  /** Set if the test cannot run as written, even if a task handles the error. */
  #refusal: DagTestError | null = null;

  /** @param facts The facts of a run that another run requested. */
  constructor(program: Program, options: RunOptions, facts: Partial<RunFacts> = {}) {
    this.#manifest = program.describe();
    this.#admission = new Admission(options, this.#manifest);
    this.#stoppable = stoppable(this.#manifest, options);
    this.#startedAt = startOf(options);
    this.#deadline = this.#startedAt + (this.#manifest.runTimeoutMs ?? NEVER);
    const clock =
      options.clock === "real" ? new RealClock(this.#startedAt) : new VirtualClock(this.#startedAt);
    this.#clock = clock;
    const run = { ...runFacts(this.#manifest.dagId, this.#startedAt, options), ...facts };
    this.#facts = run;
    const play: Play = (...of) => new InProcessRun(...of).finish();
    const inner = new InnerRuns({ clock, options, run, play });
    this.#inner = inner;
    const journal = new Journal(options, { run, inner, elapsed: () => clock.now() - this.#startedAt });
    this.#journal = journal;
    this.#conf = confOf(options, this.#manifest);
    const taskIds = new Set(this.#manifest.tasks.map(({ taskId }) => taskId));
    checkKeys(options.triggers ?? {}, taskIds);
    checkApprovals(options.approvals ?? {}, this.#manifest.tasks);
    this.#outside = new Outside(options, { run, startedAt: this.#startedAt, taskIds });
    this.#closesAt =
      options.until === undefined
        ? Math.max(this.#startedAt + DAY_MS, this.#outside.lastAt)
        : this.#startedAt + durationOption("until", options.until);
    const model = RunModel.load(compileGraph(this.#manifest), [], { drive: this.#driveFor(options) });
    this.#model = model;
    const parts = { clock, model, run, conf: this.#conf };
    this.#callbacks = new Callbacks(program, journal, parts, options.triggers);
    const manifest = this.#manifest;
    this.#retries = new Retries({ callbacks: this.#callbacks, clock, journal, manifest, model });
    const post = (news: () => void | Promise<void>) => this.#post(news);
    const refuse = (error: DagTestError) => this.#refuse(error);
    this.#waits = new Waits({
      clock,
      desk: new ScriptedTriggers(options, clock, { signals: journal.signals, inner }),
      journal,
      memory: this.#memory,
      deadline: this.#deadline,
      post,
      refuse,
    });
    this.#reports = new Reports({
      callbacks: this.#callbacks,
      clock,
      journal,
      model,
      run,
      waits: this.#waits,
    });
    this.#attempts = new Attempts({
      program,
      isVirtual: clock.isVirtual,
      settleMs: options.settle === undefined ? undefined : durationOption("settle", options.settle),
      runOver: this.#over.signal,
      onEnd: (ended) => post(() => this.#reports.ended(ended)),
      onSilence: () => post(() => {}),
      refuse,
    });
    this.#subscriptions = new Subscriptions({
      clock,
      journal,
      manifest: this.#manifest,
      model,
      run,
      callOnSignal: (taskId, signal) =>
        this.#callbacks.callOnSignal(taskId, model.get(taskId)?.tryNumber ?? 0, signal),
      post,
    });
    journal.signals.listen({ received: (signal) => post(() => this.#receive(signal)), refuse });
  }

  /** Like the scheduler: a run without rules has a drive only if there are manual commands. */
  #driveFor({ commands = [] }: RunOptions): RecordedDrive | null {
    if (!isDriven(this.#manifest) && commands.length === 0) return null;
    const { dagId, runId } = this.#facts;
    const run = { dagId, runId, conf: this.#conf };
    const [manifest, rules] = [this.#manifest, new RuleSet(this.#manifest)];
    const options = { manifest, rules, run, startedAt: this.#startedAt };
    return new RecordedDrive(options, (action) => this.#journal.act(action));
  }

  #receive(signal: SignalFacts): void {
    this.#subscriptions.receive(signal);
    this.#waits.receiveSignal();
  }

  async finish(): Promise<RunResult> {
    try {
      const reason = await this.#play();
      const state = reason === null ? "success" : "failed";
      await this.#callbacks.ofRun(state, { reason, tryNumber: this.#retries.tryNumber });
      const { actions, deadLetters, timeline, logs, notices, signals } = this.#journal;
      const runs = { subRuns: this.#inner.ended, triggeredRuns: this.#inner.recorded };
      const tasks = [...this.#model.instances()].map((instance) => this.#journal.result(instance));
      const { runId } = this.#facts;
      const closedBy = this.#isTimedOut ? null : (this.#closedBy ?? this.#model.drive?.closed ?? null);
      const noted = { actions, deadLetters, timeline, logs, notices, signals: signals.sent };
      const { tryNumber: tries } = this.#retries;
      return new RunResult({ state, reason, runId, tries, tasks, closedBy, ...noted, ...runs });
    } finally {
      this.#over.abort(new DOMException("the run has ended", "AbortError"));
      await this.#waits.close();
    }
  }

  /** The reason why the run failed; null if it succeeded. */
  async #play(): Promise<string | null> {
    this.#model.start(this.#clock.now());
    for (const signal of this.#outside.drain(this.#startedAt)) this.#journal.addExternal(signal);
    while (this.#mailbox.length > 0) await this.#mailbox.shift()!();
    for (;;) {
      this.#evaluate();
      for (const wait of this.#waits.drainCancelled()) await this.#callbacks.cancelled(wait, "cancelled");
      await this.#retries.callCallbacks();
      if (this.#refusal !== null) throw this.#refusal;
      const verdict = this.#model.verdict();
      const isOver = verdict.state !== "running" && !this.#retries.follow(verdict, this.#isTimedOut);
      if (isOver) {
        if (this.#isTimedOut) return "timed_out";
        return verdict.state === "failed" ? verdict.reason : null;
      }
      await this.#next();
    }
  }

  /** Applies all consequences of the last events. */
  #evaluate(): void {
    do {
      this.#expandMaps();
      this.#openGates();
      this.#subscriptions.apply();
      this.#admit();
      this.#reports.record();
      for (const cancel of this.#model.drainCancels()) this.#attempts.stop(cancel);
      if (this.#model.drive || this.#isTimedOut) this.#waits.dropAbandoned();
    } while (this.#model.beginAgain(this.#clock.now(), (instance) => this.#journal.forget(instance)));
  }

  /** Advances the clock until there is an event or something is due, and processes it. */
  async #next(): Promise<void> {
    const moments = () => Math.min(this.#nextMoment(), this.#runEnd());
    if (this.#mailbox.length === 0) {
      let isBusy = this.#isBusy();
      if (!isBusy && moments() === NEVER) return this.#stall();
      if (!isBusy && this.#attempts.size > 0 && this.#clock.isVirtual) {
        // Silent attempts share this thread.
        await nextTurn();
        isBusy = this.#isBusy();
      }
      if (this.#mailbox.length === 0) {
        const nextMoment = () => Math.min(moments(), this.#closing());
        await this.#clock.pass(nextMoment, { isBusy, arrival: () => this.#arrival() });
      }
    }
    if (this.#refusal !== null) return;
    const news = this.#mailbox.shift();
    if (news) await news();
    else await this.#fireDue();
  }

  #isBusy(): boolean {
    const mayBeStopped = this.#model.drive?.closed === null && this.#nextMoment() !== NEVER;
    return this.#attempts.isBusy(mayBeStopped) || this.#waits.isPending || this.#subscriptions.isPending;
  }

  /** Nothing is left to happen by itself. */
  #stall(): void {
    if (this.#model.drive?.closed !== null)
      throw stuck(this.#manifest.dagId, { model: this.#model, waits: this.#waits });
    this.#close("idle");
  }

  #close(by: "idle" | "until"): void {
    this.#closedBy = by;
    this.#model.apply({ type: "closed", reason: END_OF_TEST }, this.#clock.now());
  }

  #expandMaps(): void {
    const now = this.#clock.now();
    do {
      for (const place of this.#model.drainExpandable())
        this.#model.apply(expansionOf(this.#journal.reader(this.#model), place), now);
    } while (this.#model.make(NEVER, now));
  }

  /** A test has no earlier runs, so `dependsOnPast` is always satisfied. */
  #openGates(): void {
    for (const { node, mapIndex } of this.#model.drainGated())
      this.#model.apply({ type: "gateOpened", taskId: node.id, mapIndex }, this.#clock.now());
  }

  #admit(): void {
    for (const instance of this.#model.drainReady()) {
      const { startTrigger } = instance.node.manifest;
      if (instance.resumedAttempt === null && startTrigger)
        this.#reports.startWaiting(instance, this.#newAttempt(), deferralOf(startTrigger));
      else this.#admission.add(instance);
    }
    for (const instance of this.#admission.admit(this.#attempts)) this.#dispatch(instance);
  }

  #dispatch(instance: Instance): void {
    const { node, mapIndex, tryNumber, maxTries } = instance;
    const now = this.#clock.now();
    const attempt = this.#newAttempt();
    const of = { taskId: node.id, mapIndex, attempt };
    // A branch may have excluded it while it was queued.
    if (!this.#model.apply({ type: "queued", ...of }, now)) return;
    this.#model.apply({ type: "started", at: now, ...of }, now);
    if (tryNumber > MAX_TRIES) this.#refuse(endless(instance, now - this.#startedAt));
    if (this.#refusal !== null) return;
    this.#journal.begin(instance);
    this.#reports.record();
    const resumed = instance.resumedAttempt !== null;
    const startSignals = this.#model.drive?.startSignals(node.id) ?? [];
    this.#journal.report({ type: "started", taskId: node.id, mapIndex, tryNumber, resumed });
    const call = {
      ...of,
      tryNumber,
      maxTries,
      resumePoint: this.#waits.resumePointOf(instance),
      elapsedMs: now - (instance.startedAt ?? now),
      inputs: this.#journal.inputs(this.#model, instance),
      run: this.#facts,
      conf: structuredClone(this.#conf),
      ...(startSignals.length > 0 && { startSignals }),
      host: {
        startSignals: async () => this.#journal.signals.byVersion(startSignals),
        ...this.#journal.host(node.id, mapIndex),
        ...this.#memory.host(instance, attempt),
        check: (trigger: TriggerCall) => this.#check(instance, trigger),
      },
    };
    this.#attempts.start(instance, call, this.#stoppable.has(node.id));
  }

  async #check(instance: Instance, trigger: TriggerCall): Promise<Json | undefined> {
    try {
      return await this.#waits.check(instance, trigger, this.#over.signal);
    } catch (error) {
      if (error instanceof DagTestError) this.#refuse(error);
      throw error;
    }
  }

  #post(news: () => void | Promise<void>): void {
    this.#mailbox.push(news);
    this.#wake();
  }

  #refuse(error: DagTestError): void {
    this.#refusal ??= error;
    this.#wake();
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** The next time at which something is due: an external signal, a trigger, a timeout, a retry, a tick. */
  #nextMoment(): number {
    return Math.min(
      this.#outside.nextAt(),
      this.#waits.nextAt(),
      this.#subscriptions.nextAt(),
      this.#model.nextDeadline() ?? NEVER,
      this.#model.nextRetryAt() ?? NEVER,
      this.#retries.nextAt(),
    );
  }

  #runEnd(): number {
    return this.#isTimedOut ? NEVER : this.#deadline;
  }

  #closing(): number {
    return this.#model.drive?.closed === null ? this.#closesAt : NEVER;
  }

  /** At the same moment, events apply before timeouts, and both before the end of the run. */
  async #fireDue(): Promise<void> {
    const now = this.#clock.now();
    const given = this.#outside.drain(now);
    for (const signal of given) this.#journal.addExternal(signal);
    if (given.length > 0) return; // They are processed first.
    if (this.#nextMoment() > now && this.#closing() <= now) return this.#close("until");
    if (this.#nextMoment() > now && this.#runEnd() <= now) {
      this.#isTimedOut = true;
      return await this.#callbacks.timedOut(now);
    }
    for (const wait of this.#waits.drainFired(now)) {
      const result = resultOfFired(wait.deferral, wait.outcome!);
      this.#waits.end(wait, result.kind === "resume" ? "resumed" : "finished");
      await this.#reports.follow(wait, result);
    }
    for (const instance of this.#model.nextOverdue(now)) {
      const wait = this.#waits.of(instance.attempt);
      if (!wait || instance.wait === null) continue;
      this.#waits.end(wait, "timeout");
      const { node, startedAt } = instance;
      const result = resultOfTimeout(instance.wait, node.manifest, { at: now, startedAt });
      await this.#reports.follow(wait, result);
      if (result.kind !== "resume") await this.#callbacks.cancelled(wait, "timeout");
    }
    this.#retries.begin(now);
    this.#model.fireRetries(now);
  }

  #newAttempt(): string {
    return `${this.#facts.runId}/${++this.#attemptCount}`;
  }
}

/**
 * One run in this process. The engine's model decides what is next; this class does what scheduler, executor and
 * triggerer do otherwise. On a virtual clock, time moves only when nothing is under way: to the next retry, or to the
 * end of the next wait. So a timeline is the same in every execution, as long as the tasks themselves are.
 */
import {
  type Candidate,
  compileGraph,
  type Instance,
  ReadyQueue,
  RunModel,
  retryDelayMs,
} from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { DagManifest, TriggerCall } from "@tradewind/sdk/manifest";
import type { Deferral, Program, RunFacts, SettledInput, TaskOutcome } from "@tradewind/sdk/program";
import { Callbacks } from "./callbacks.ts";
import { type Clock, RealClock, VirtualClock } from "./clock.ts";
import { DagTestError } from "./errors.ts";
import { Journal } from "./journal.ts";
import type { RunOptions } from "./options.ts";
import { RunResult } from "./result.ts";
import { confOf, runFacts, startOf } from "./run-facts.ts";
import {
  deferralOf,
  type Sequel,
  sequelOf,
  sequelOfTaskTimeout,
  sequelOfTimeout,
  type TryEnd,
  waitOf,
} from "./sequel.ts";
import { StepMemory } from "./step-memory.ts";
import { timedAttempt } from "./timed-attempt.ts";
import { TriggerDesk } from "./trigger-desk.ts";
import { type KeptWait, Waits } from "./waits.ts";

interface Ready extends Candidate {
  readonly instance: Instance;
}

interface Ended {
  readonly instance: Instance;
  readonly attempt: string;
  readonly outcome: TaskOutcome;
  readonly durationMs: number;
}

/** The one limit of a test: how many tasks run at once. Pools have room for all. */
const LIMIT = "run";
const NEVER = Number.POSITIVE_INFINITY;

export class InProcessRun {
  readonly #program: Program;
  readonly #manifest: DagManifest;
  readonly #model: RunModel;
  readonly #journal: Journal;
  readonly #clock: Clock;
  readonly #memory = new StepMemory();
  readonly #waits: Waits;
  readonly #callbacks: Callbacks;
  readonly #facts: RunFacts;
  readonly #conf: Json;
  readonly #concurrency: number;
  readonly #startedAt: number;
  readonly #deadline: number;
  readonly #over = new AbortController();
  readonly #ready = new ReadyQueue<Ready>();
  /** What has happened and waits to be heard. */
  readonly #mailbox: (() => void)[] = [];
  #wake: () => void = () => {};
  #attempts = 0;
  #running = 0;
  #isTimedOut = false;
  /** The test cannot be carried out, whatever a task makes of that. */
  #refusal: DagTestError | null = null;

  constructor(program: Program, options: RunOptions) {
    this.#program = program;
    this.#manifest = program.describe();
    for (const { taskId, map, rules, lifetime, every } of this.#manifest.tasks) {
      const problem =
        map !== null
          ? "is mapped"
          : rules || every || lifetime === "streaming"
            ? "is driven by signals or times of its own"
            : null;
      if (problem === null) continue;
      throw new DagTestError("TW_TEST_UNSUPPORTED", `task "${taskId}" ${problem}, which runDag cannot run`);
    }
    this.#concurrency = options.concurrency ?? this.#manifest.maxActiveTasks;
    if (!(this.#concurrency >= 1)) {
      throw new DagTestError(
        "TW_TEST_BAD_OPTION",
        `concurrency must be 1 or more, got ${options.concurrency}`,
      );
    }
    this.#model = RunModel.load(compileGraph(this.#manifest), []);
    this.#startedAt = startOf(options);
    this.#deadline = this.#startedAt + (this.#manifest.runTimeoutMs ?? NEVER);
    this.#clock =
      options.clock === "real" ? new RealClock(this.#startedAt) : new VirtualClock(this.#startedAt);
    this.#facts = runFacts(this.#manifest.dagId, this.#startedAt, options);
    this.#journal = new Journal(options, this.#facts);
    this.#conf = confOf(options);
    this.#callbacks = new Callbacks(program, this.#journal, { run: this.#facts, conf: this.#conf });
    this.#waits = new Waits({
      clock: this.#clock,
      desk: new TriggerDesk(options.triggers ?? {}, this.#clock, this.#journal.signals),
      journal: this.#journal,
      memory: this.#memory,
      deadline: this.#deadline,
      post: (news) => this.#post(news),
      refuse: (error) => {
        this.#refusal ??= error;
      },
    });
    this.#journal.signals.onSend(() => this.#post(() => this.#waits.hear()));
  }

  async finish(): Promise<RunResult> {
    try {
      const reason = await this.#play();
      const state = reason === null ? "success" : "failed";
      await this.#callbacks.run(null, state === "success" ? "success" : "failure");
      const { timeline, logs, triggeredRuns, signals } = this.#journal;
      const tasks = [...this.#model.instances()].map((instance) => this.#journal.result(instance));
      const { runId } = this.#facts;
      const noted = { timeline, logs, triggeredRuns, signals: signals.sent };
      return new RunResult({ state, reason, runId, tasks, ...noted });
    } finally {
      this.#over.abort(new DOMException("the run is over", "AbortError"));
      await this.#waits.close();
    }
  }

  /** Why the run failed; null: it did not. */
  async #play(): Promise<string | null> {
    this.#model.start(this.#clock.now());
    for (;;) {
      this.#openGates();
      this.#admit();
      this.#note();
      const verdict = this.#model.verdict();
      if (verdict.state !== "running") {
        if (this.#isTimedOut) return "timed_out";
        return verdict.state === "failed" ? verdict.reason : null;
      }
      const isBusy = this.#running > 0 || this.#waits.isAsking;
      const nextMoment = () => Math.min(this.#nextMoment(), this.#runEnd());
      if (!isBusy && nextMoment() === NEVER) throw this.#stuck();
      if (this.#mailbox.length === 0)
        await this.#clock.pass(nextMoment, { isBusy, arrival: () => this.#arrival() });
      const news = this.#mailbox.shift();
      if (news) news();
      else await this.#fireDue();
      if (this.#refusal !== null) throw this.#refusal;
    }
  }

  /** A test has no earlier runs, so the past is always in order. */
  #openGates(): void {
    for (const { node, mapIndex } of this.#model.takeGated()) {
      this.#model.apply({ type: "gateOpened", taskId: node.id, mapIndex }, this.#clock.now());
    }
  }

  #admit(): void {
    for (const instance of this.#model.takeReady()) {
      const { node, mapIndex, step } = instance;
      if (step === null && node.manifest.startTrigger) {
        this.#startWaiting(instance, deferralOf(node.manifest.startTrigger));
        continue;
      }
      this.#ready.add({
        instance,
        weight: node.weight,
        mapIndex,
        logicalDate: null,
        pool: "",
        slots: 0,
        limits: [LIMIT],
      });
    }
    this.#ready.release(LIMIT);
    const picks = this.#ready.take((_, kind) =>
      kind === "pool" ? { slots: -1, occupied: 0 } : { slots: this.#concurrency, occupied: this.#running },
    );
    for (const { instance } of picks) this.#dispatch(instance);
  }

  #dispatch(instance: Instance): void {
    const { node, mapIndex, tryNumber, maxTries } = instance;
    const now = this.#clock.now();
    const attempt = this.#newAttempt();
    const of = { taskId: node.id, mapIndex, attempt };
    // A branch may have ruled it out while it stood in line.
    if (!this.#model.apply({ type: "queued", ...of }, now)) return;
    this.#model.apply({ type: "started", at: now, ...of }, now);
    this.#note();
    this.#running++;
    const resumed = instance.step !== null;
    this.#journal.report({ type: "started", taskId: node.id, mapIndex, tryNumber, resumed });
    const startedAt = performance.now();
    const call = {
      ...of,
      tryNumber,
      maxTries,
      step: this.#waits.stepOf(instance),
      elapsedMs: now - (instance.startedAt ?? now),
      inputs: this.#inputs(instance),
      run: this.#facts,
      conf: structuredClone(this.#conf),
      host: {
        ...this.#journal.host(node.id, mapIndex),
        ...this.#memory.host(instance, attempt),
        check: (trigger: TriggerCall) => this.#check(instance, trigger),
      },
    };
    const limits = { timeoutMs: node.manifest.timeoutMs, runOver: this.#over.signal };
    void timedAttempt(this.#program, call, limits).then((outcome) => {
      const durationMs = performance.now() - startedAt;
      this.#post(() => this.#hear({ instance, attempt, outcome, durationMs }));
    });
  }

  #inputs(instance: Instance): Record<string, SettledInput> {
    const entries = Object.entries(instance.node.manifest.inputs);
    return Object.fromEntries(
      entries.map(([name, { taskId }]) => [name, this.#journal.settled(this.#model.get(taskId)!)]),
    );
  }

  #post(news: () => void): void {
    this.#mailbox.push(news);
    this.#wake();
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #hear({ instance, attempt, outcome, durationMs }: Ended): void {
    const { node, mapIndex } = instance;
    const now = this.#clock.now();
    const of = { taskId: node.id, mapIndex, attempt, at: now };
    this.#running--;
    switch (outcome.kind) {
      case "deferred":
        if (this.#model.apply({ type: "deferred", wait: waitOf(outcome, now), ...of }, now))
          this.#waits.begin(instance, attempt, outcome);
        break;
      case "rescheduled": {
        const retryAt = now + outcome.afterMs;
        if (this.#model.apply({ type: "rescheduled", retryAt, ...of }, now)) this.#journal.putOff(instance);
        break;
      }
      default:
        this.#end(instance, attempt, outcome);
    }
    this.#note(durationMs);
  }

  /** An attempt, or the trigger it waited for, ended the try. */
  #end(instance: Instance, attempt: string, outcome: TryEnd): void {
    const { node, mapIndex, tryNumber } = instance;
    const { dagId, runId } = this.#facts;
    const now = this.#clock.now();
    const of = { taskId: node.id, mapIndex, attempt, at: now };
    this.#journal.keep(node.id, outcome);
    if (outcome.kind === "success") {
      this.#model.apply({ type: "succeeded", skip: outcome.skip, ...of }, now);
    } else if (outcome.kind === "skipped") {
      this.#model.apply({ type: "skipped", reason: outcome.reason, ...of }, now);
    } else {
      const { retry, error } = outcome;
      const retryAt =
        now + retryDelayMs(node.manifest, { dagId, runId, taskId: node.id, mapIndex, tryNumber });
      this.#model.apply({ type: "failed", retry, retryAt, reason: error.message, ...of }, now);
    }
  }

  #startWaiting(instance: Instance, deferral: Deferral): void {
    const { node, mapIndex } = instance;
    const attempt = this.#newAttempt();
    const at = this.#clock.now();
    const event = { type: "startedWaiting", taskId: node.id, mapIndex, attempt, at } as const;
    if (this.#model.apply({ ...event, wait: waitOf(deferral, at) }, at))
      this.#waits.begin(instance, attempt, deferral);
  }

  async #check(instance: Instance, trigger: TriggerCall): Promise<Json | undefined> {
    try {
      return await this.#waits.check(instance, trigger, this.#over.signal);
    } catch (error) {
      if (error instanceof DagTestError) this.#refusal ??= error;
      throw error;
    }
  }

  /** When something is due by itself: a trigger, the end of a wait, a retry. */
  #nextMoment(): number {
    return Math.min(
      this.#waits.nextAt(),
      this.#model.nextDeadline() ?? NEVER,
      this.#model.nextRetryAt() ?? NEVER,
    );
  }

  #runEnd(): number {
    return this.#isTimedOut ? NEVER : this.#deadline;
  }

  /** What was fired counts before what is out of time at the same moment, and both before the end of the run. */
  async #fireDue(): Promise<void> {
    const now = this.#clock.now();
    if (this.#nextMoment() > now && this.#runEnd() <= now) {
      this.#isTimedOut = true;
      this.#model.apply({ type: "halted", at: now, reason: "run timed out", active: "failed" }, now);
      return;
    }
    for (const wait of this.#waits.takeFired(now)) {
      const sequel = sequelOf(wait.deferral, wait.outcome!);
      this.#waits.end(wait, sequel.kind === "resume" ? "resumed" : "finished");
      await this.#follow(wait, sequel);
    }
    for (const instance of this.#model.takeOverdue(now)) {
      const wait = this.#waits.of(instance.attempt);
      if (!wait || instance.wait === null) continue;
      this.#waits.end(wait, "timeout");
      const { timeoutMs } = instance.node.manifest;
      const isTryOver = timeoutMs !== null && (instance.startedAt ?? now) + timeoutMs <= now;
      await this.#follow(wait, isTryOver ? sequelOfTaskTimeout(timeoutMs) : sequelOfTimeout(instance.wait));
    }
    this.#model.fireRetries(now);
  }

  async #follow({ instance, attempt }: KeptWait, sequel: Sequel): Promise<void> {
    const now = this.#clock.now();
    if (instance.state !== "deferred" || instance.attempt !== attempt) return;
    if (sequel.kind === "resume") {
      const { node, mapIndex } = instance;
      this.#model.apply({ type: "resumed", taskId: node.id, mapIndex, attempt }, now);
      return;
    }
    this.#end(instance, attempt, sequel);
    this.#note();
    // No attempt is there to run it.
    if (sequel.kind === "success") await this.#callbacks.run(instance, "success");
    if (sequel.kind === "failed") {
      const event = (instance.state as string) === "up_for_retry" ? "retry" : "failure";
      await this.#callbacks.run(instance, event, sequel.error);
    }
  }

  #stuck(): DagTestError {
    const waiting = [...this.#model.instances()].find(({ state }) => state === "deferred");
    const wait = this.#waits.of(waiting?.attempt ?? null);
    if (wait) {
      const { deferral, instance } = wait;
      return new DagTestError(
        "TW_TEST_NEVER_FIRES",
        `task "${instance.node.id}" waits for "${deferral.trigger.kind}", which does not fire, without a timeout`,
        "give an event in `triggers` (or `signals`), or the wait a timeout",
      );
    }
    const { dagId } = this.#manifest;
    return new DagTestError("TW_TEST_STUCK", `run of "${dagId}": nothing runs, and nothing is due`);
  }

  #newAttempt(): string {
    return `${this.#facts.runId}/${++this.#attempts}`;
  }

  #note(durationMs?: number): void {
    const atMs = this.#clock.now() - this.#startedAt;
    this.#journal.note(this.#model.takeChanges(), atMs, durationMs);
  }
}

/**
 * One run in this process. The engine's model decides what is next; this class does what scheduler and executor do
 * otherwise. The clock is virtual and moves only when nothing runs: to the next retry. So a timeline is the same in
 * every execution, as long as the tasks themselves are.
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
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Program, RunFacts, SettledInput, TaskOutcome } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import { Journal } from "./journal.ts";
import type { RunOptions } from "./options.ts";
import { RunResult } from "./result.ts";
import { confOf, runFacts, startOf } from "./run-facts.ts";
import { timedAttempt } from "./timed-attempt.ts";

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

export class InProcessRun {
  readonly #program: Program;
  readonly #manifest: DagManifest;
  readonly #model: RunModel;
  readonly #journal: Journal;
  readonly #facts: RunFacts;
  readonly #conf: Json;
  readonly #concurrency: number;
  readonly #startedAt: number;
  readonly #ready = new ReadyQueue<Ready>();
  /** Attempts that have ended and wait to be heard. */
  readonly #mailbox: Ended[] = [];
  #wake: () => void = () => {};
  #now: number;
  #attempts = 0;
  #running = 0;

  constructor(program: Program, options: RunOptions) {
    this.#program = program;
    this.#manifest = program.describe();
    const mapped = this.#manifest.tasks.find((task) => task.map !== null);
    if (mapped) {
      throw new DagTestError(
        "TW_TEST_UNSUPPORTED",
        `task "${mapped.taskId}" is mapped, which runDag cannot run`,
      );
    }
    this.#concurrency = options.concurrency ?? this.#manifest.maxActiveTasks;
    if (!(this.#concurrency >= 1)) {
      throw new DagTestError(
        "TW_TEST_BAD_OPTION",
        `concurrency must be 1 or more, got ${options.concurrency}`,
      );
    }
    this.#model = RunModel.load(compileGraph(this.#manifest), []);
    this.#journal = new Journal(options);
    this.#startedAt = startOf(options);
    this.#now = this.#startedAt;
    this.#facts = runFacts(this.#manifest.dagId, this.#startedAt, options);
    this.#conf = confOf(options);
  }

  async finish(): Promise<RunResult> {
    this.#model.start(this.#now);
    let reason: string | null = null;
    for (;;) {
      this.#openGates();
      this.#note();
      this.#admit();
      if (this.#running > 0) {
        this.#hear(await this.#nextEnded());
        continue;
      }
      const verdict = this.#model.verdict();
      if (verdict.state === "failed") reason ??= verdict.reason;
      if (verdict.state !== "running") break;
      if (this.#advance() === "timed_out") reason = "timed_out";
    }
    const state = reason === null ? "success" : "failed";
    await this.#runCallback(state);
    const { timeline, logs } = this.#journal;
    const tasks = [...this.#model.instances()].map((instance) => this.#journal.result(instance));
    return new RunResult({ state, reason, runId: this.#facts.runId, tasks, timeline, logs });
  }

  /** A test has no earlier runs, so the past is always in order. */
  #openGates(): void {
    for (const { node, mapIndex } of this.#model.takeGated()) {
      this.#model.apply({ type: "gateOpened", taskId: node.id, mapIndex }, this.#now);
    }
  }

  #admit(): void {
    for (const instance of this.#model.takeReady()) {
      const { node, mapIndex } = instance;
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
    const attempt = `${this.#facts.runId}/${++this.#attempts}`;
    const of = { taskId: node.id, mapIndex, attempt };
    // A branch may have ruled it out while it stood in line.
    if (!this.#model.apply({ type: "queued", ...of }, this.#now)) return;
    this.#model.apply({ type: "started", at: this.#now, ...of }, this.#now);
    this.#note();
    this.#running++;
    this.#journal.report({ type: "started", taskId: node.id, mapIndex, tryNumber });
    const startedAt = performance.now();
    const call = {
      ...of,
      tryNumber,
      maxTries,
      step: null,
      inputs: this.#inputs(instance),
      run: this.#facts,
      conf: structuredClone(this.#conf),
      host: this.#journal.host(node.id, mapIndex),
    };
    void timedAttempt(this.#program, call, node.manifest.timeoutMs).then((outcome) => {
      this.#mailbox.push({ instance, attempt, outcome, durationMs: performance.now() - startedAt });
      this.#wake();
    });
  }

  #inputs(instance: Instance): Record<string, SettledInput> {
    const entries = Object.entries(instance.node.manifest.inputs);
    return Object.fromEntries(
      entries.map(([name, { taskId }]) => [name, this.#journal.settled(this.#model.get(taskId)!)]),
    );
  }

  async #nextEnded(): Promise<Ended> {
    if (this.#mailbox.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#mailbox.shift()!;
  }

  #hear({ instance, attempt, outcome, durationMs }: Ended): void {
    const { node, mapIndex, tryNumber } = instance;
    const { dagId, runId } = this.#facts;
    const of = { taskId: node.id, mapIndex, attempt, at: this.#now };
    this.#running--;
    this.#journal.keep(node.id, outcome);
    if (outcome.kind === "success") {
      this.#model.apply({ type: "succeeded", skip: outcome.skip, ...of }, this.#now);
    } else if (outcome.kind === "skipped") {
      this.#model.apply({ type: "skipped", reason: outcome.reason, ...of }, this.#now);
    } else {
      const { retry, error } = outcome;
      const retryAt =
        this.#now + retryDelayMs(node.manifest, { dagId, runId, taskId: node.id, mapIndex, tryNumber });
      this.#model.apply({ type: "failed", retry, retryAt, reason: error.message, ...of }, this.#now);
    }
    this.#note(durationMs);
  }

  /** Nothing runs: the clock jumps to the next retry, or to the end of the run's time. */
  #advance(): "ok" | "timed_out" {
    const { dagId, runTimeoutMs } = this.#manifest;
    const next = this.#model.nextRetryAt();
    if (next === null) {
      throw new DagTestError("TW_TEST_STUCK", `run of "${dagId}": nothing runs, and nothing is due`);
    }
    const deadline = runTimeoutMs === null ? Number.POSITIVE_INFINITY : this.#startedAt + runTimeoutMs;
    this.#now = Math.max(this.#now, Math.min(next, deadline));
    if (next <= deadline) {
      this.#model.fireRetries(this.#now);
      return "ok";
    }
    this.#model.apply(
      { type: "halted", at: this.#now, reason: "run timed out", active: "failed" },
      this.#now,
    );
    return "timed_out";
  }

  #note(durationMs?: number): void {
    this.#journal.note(this.#model.takeChanges(), this.#now - this.#startedAt, durationMs);
  }

  async #runCallback(state: "success" | "failed"): Promise<void> {
    const event = state === "success" ? "success" : "failure";
    const host = { ...this.#journal.host("", -1), abort: new AbortController().signal };
    const { run, conf } = { run: this.#facts, conf: this.#conf };
    const done = await this.#program.callback({
      taskId: null,
      event,
      run,
      tryNumber: 1,
      error: null,
      conf,
      host,
    });
    if (!done.ok)
      host.log("error", `callback for ${event} failed: ${done.error.message}`, { stack: done.error.stack });
  }
}

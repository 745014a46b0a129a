/**
 * Runs that signals, ticks and people drive: reads the log for them, puts to each what concerns it, and sees to what
 * that means for attempts that are under way. Everything is decided within the job's turn, between two transactions.
 */
import { join } from "node:path";
import type { BundleCache } from "../../code/bundle-cache.ts";
import type { Executor, ExecutorEvent } from "../../execute/contract.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import { GRACE_MS } from "../../model/index.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { Admission } from "../admit/admission.ts";
import type { ActiveAttempts } from "../batch/active-attempts.ts";
import { dispatchError } from "../dispatch/dispatcher.ts";
import type { RunActor, Traces } from "../loaded/run-actor.ts";
import type { Failure, Question } from "./on-signal-queue.ts";
import { SignalFeed } from "./signal-feed.ts";

export interface DrivingOptions {
  readonly database: Database;
  readonly bundles: BundleCache;
  readonly logsDir: string;
  readonly logger: Logger;
  readonly executor: Executor | undefined;
  readonly admission: Admission;
  readonly activeAttempts: ActiveAttempts;
  readonly wakeUps: WakeUps;
  readonly wake: () => void;
}

/** For an `onSignal` that says no timeout of its own. It only decides, so it has seconds. */
const ON_SIGNAL_TIMEOUT_MS = 30_000;

type ReactionEnded = Extract<ExecutorEvent, { type: "reactionEnded" }>;

export class Driving {
  readonly feed: SignalFeed;
  readonly #options: DrivingOptions;
  /** Runs to be looked at in the next turn: something has arrived, or a task is to begin again. */
  readonly #due = new Set<RunActor>();
  readonly #asked = new Map<string, RunActor>();
  readonly #answers: ReactionEnded[] = [];

  constructor(options: DrivingOptions) {
    this.#options = options;
    this.feed = new SignalFeed(options);
  }

  /** A run that was just loaded: orders by hand first. What its attempts had been asked before, they are asked again. */
  add(actor: RunActor, now: number): void {
    if (!actor.ears) return;
    this.feed.add(actor);
    this.#due.add(actor);
    actor.ears.obey(actor.model, now);
    for (const instance of actor.model.takeReleased()) this.#options.admission.freed(actor, instance);
    for (const instance of actor.model.instances()) {
      const reason = actor.model.stopping(instance);
      const { attempt, node } = instance;
      if (reason === null || attempt === null) continue;
      const graceMs = node.manifest.graceMs ?? GRACE_MS;
      this.#options.activeAttempts.cancel(attempt, `stopped by ${reason}`, { graceMs, keepsSuccess: true });
    }
  }

  drop(actor: RunActor): void {
    this.feed.drop(actor);
    this.#due.delete(actor);
    for (const [id, asking] of this.#asked) if (asking === actor) this.#asked.delete(id);
  }

  /** An `onSignal` has answered, or could not be asked. */
  answered(event: ReactionEnded): void {
    this.#answers.push(event);
    this.#options.wake();
  }

  async read(): Promise<void> {
    for (const actor of await this.feed.read()) this.#due.add(actor);
  }

  /** What has arrived is put to the runs, and tasks that are to begin again do. */
  apply({ now, touched, traces }: { touched: Set<RunActor>; traces: Traces; now: number }): void {
    for (const answer of this.#answers.splice(0)) {
      const actor = this.#asked.get(answer.reactionId);
      this.#asked.delete(answer.reactionId);
      if (!actor) continue;
      const { drive } = actor.model;
      const failure = actor.ears?.answered(answer, { drive, now });
      if (failure) this.#bury(actor, failure, traces);
      this.#due.add(actor);
    }
    for (const actor of this.feed.late()) touched.add(actor);
    // Also those that something else has happened to: a task that has just ended may be asked to begin again.
    const driven = new Set([...this.#due, ...[...touched].filter(({ ears }) => ears !== null)]);
    this.#due.clear();
    for (const actor of driven) {
      touched.add(actor);
      const questions = actor.ears?.hear(actor.model, now, traces.deadLetters) ?? [];
      for (const question of questions) this.#put(actor, question);
      actor.beginAgain({ at: now, traces });
      for (const instance of actor.model.takeReleased()) this.#options.admission.freed(actor, instance);
    }
  }

  /** The batch is stored: attempts are stopped, and tasks whose end had to be stored begin again in the next turn. */
  committed(touched: Iterable<RunActor>): void {
    for (const actor of touched) {
      for (const { attempt, graceMs, isFinal, reason } of actor.model.takeCancels())
        this.#options.activeAttempts.cancel(attempt, reason, { graceMs, keepsSuccess: isFinal });
      // Some room was made for signals that had to stay in the log.
      this.feed.refill(actor);
      if (!actor.model.isPending) continue;
      this.#due.add(actor);
      this.#options.wake();
    }
  }

  #bury({ run }: RunActor, { letter, ...what }: Failure, traces: Traces): void {
    if (letter) traces.deadLetters.push(letter);
    const { dag_id: dagId, run_id: runId } = run;
    this.#options.logger.warn("onSignal keeps failing: the signal is a dead letter", {
      dagId,
      runId,
      ...what,
    });
  }

  #put(actor: RunActor, question: Question): void {
    this.#asked.set(question.id, actor);
    void this.#submit(actor, question).catch((cause) => {
      const error = dispatchError(cause);
      this.answered({ type: "reactionEnded", reactionId: question.id, action: null, error });
    });
  }

  async #submit(actor: RunActor, { id, signal, taskId }: Question): Promise<void> {
    const { bundles, executor, logsDir } = this.#options;
    const { bundleHash } = actor.version;
    const bundlePath = await bundles.path(bundleHash);
    const { key, namespace, value } = signal;
    executor?.submitReaction({
      reactionId: id,
      bundleHash,
      bundlePath,
      taskId,
      tryNumber: actor.model.get(taskId)?.tryNumber ?? 0,
      run: actor.facts,
      dagRunId: actor.id,
      conf: actor.run.conf,
      signal: { namespace, key, value, version: signal.id },
      timeoutMs: actor.model.get(taskId)?.node.manifest.onSignalTimeoutMs ?? ON_SIGNAL_TIMEOUT_MS,
      logPath: join(logsDir, actor.run.dag_id, String(actor.id), "signals", `${taskId}-${signal.id}.log`),
    });
  }
}

/**
 * Drives runs by signals, ticks and manual commands: reads the signal log, evaluates the signals for each run, and cancels
 * attempts as a result. All decisions are made within the job's turn, between two transactions.
 */
import type { ExecutorEvent, ReactionAssignment } from "../../execute/contract.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import { DEFAULT_QUEUE, GRACE_MS } from "../../model/index.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { Admission } from "../admit/admission.ts";
import type { ActiveAttempts } from "../batch/active-attempts.ts";
import type { RunActor, Traces } from "../loaded/run-actor.ts";
import type { Failure, Question } from "./on-signal-queue.ts";
import { SignalFeed } from "./signal-feed.ts";

export interface DrivingOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly admission: Admission;
  readonly activeAttempts: ActiveAttempts;
  readonly wakeUps: WakeUps;
  readonly wake: () => void;
}

/** Default timeout of `onSignal`, which only decides. */
const ON_SIGNAL_TIMEOUT_MS = 30_000;

type ReactionEnded = Extract<ExecutorEvent, { type: "reactionEnded" }>;

export class Driving {
  readonly feed: SignalFeed;
  readonly #options: DrivingOptions;
  /** Runs to evaluate in the next turn: a signal has arrived, or a task starts again. */
  readonly #due = new Set<RunActor>();
  readonly #pendingReactions = new Map<string, RunActor>();
  readonly #answers: ReactionEnded[] = [];

  constructor(options: DrivingOptions) {
    this.#options = options;
    this.feed = new SignalFeed(options);
  }

  /** A run that was just loaded: carries out manual commands, then repeats the cancels of attempts that are to stop. */
  add(actor: RunActor, now: number): void {
    if (!actor.subscriptions) return;
    this.feed.add(actor);
    this.#due.add(actor);
    actor.subscriptions.applyManualCommands(actor.model, now);
    for (const instance of actor.model.drainReleased()) this.#options.admission.freed(actor, instance);
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
    for (const [id, asking] of this.#pendingReactions)
      if (asking === actor) this.#pendingReactions.delete(id);
  }

  /** An `onSignal` has answered, or could not be called. */
  answered(event: ReactionEnded): void {
    this.#answers.push(event);
    this.#options.wake();
  }

  /** The reactions that this job waits for. */
  pendingReactions(): Iterable<string> {
    return this.#pendingReactions.keys();
  }

  async read(): Promise<void> {
    for (const actor of await this.feed.read()) this.#due.add(actor);
  }

  /** Evaluates new signals and answers, and starts tasks again that were asked to. */
  apply({ now, touched, traces }: { touched: Set<RunActor>; traces: Traces; now: number }): void {
    for (const answer of this.#answers.splice(0)) {
      const actor = this.#pendingReactions.get(answer.reactionId);
      this.#pendingReactions.delete(answer.reactionId);
      if (!actor) continue;
      const { drive } = actor.model;
      const failure = actor.subscriptions?.answered(answer, { drive, now });
      if (failure) this.#addDeadLetter(actor, failure, traces);
      this.#due.add(actor);
    }
    for (const actor of this.feed.late()) touched.add(actor);
    // Also the other touched runs: a task that has just ended may have to start again.
    const driven = new Set([
      ...this.#due,
      ...[...touched].filter(({ subscriptions: ears }) => ears !== null),
    ]);
    this.#due.clear();
    for (const actor of driven) {
      touched.add(actor);
      const questions = actor.subscriptions?.apply(actor.model, now, traces.deadLetters) ?? [];
      for (const question of questions) this.#requestReaction(actor, question);
      actor.beginAgain({ at: now, traces });
      for (const instance of actor.model.drainReleased()) this.#options.admission.freed(actor, instance);
    }
  }

  /** The batch is stored: cancels attempts. Tasks whose end had to be stored first start again in the next turn. */
  committed(touched: Iterable<RunActor>): void {
    for (const actor of touched) {
      for (const { attempt, graceMs, isFinal, reason } of actor.model.drainCancels())
        this.#options.activeAttempts.cancel(attempt, reason, { graceMs, keepsSuccess: isFinal });
      // The inbox may have room for signals that stayed in the log.
      this.feed.refill(actor);
      if (!actor.model.isPending) continue;
      this.#due.add(actor);
      this.#options.wake();
    }
  }

  #addDeadLetter({ run }: RunActor, { letter, ...what }: Failure, traces: Traces): void {
    if (letter) traces.deadLetters.push(letter);
    const { dag_id: dagId, run_id: runId } = run;
    this.#options.logger.warn("onSignal keeps failing: the signal is a dead letter", {
      dagId,
      runId,
      ...what,
    });
  }

  #requestReaction(actor: RunActor, question: Question): void {
    this.#pendingReactions.set(question.id, actor);
    const { id, signal, taskId } = question;
    const instance = actor.model.get(taskId);
    const {
      executor = null,
      executorConfig,
      onSignalTimeoutMs,
      queue = DEFAULT_QUEUE,
    } = instance?.node.manifest ?? {};
    const { key, namespace, value } = signal;
    const reaction: ReactionAssignment = {
      kind: "reaction",
      id,
      bundleHash: actor.version.bundleHash,
      taskId,
      queue,
      ...(executorConfig && { config: executorConfig }),
      tryNumber: instance?.tryNumber ?? 0,
      run: actor.facts,
      dagRunId: actor.id,
      conf: actor.run.conf,
      signal: { namespace, key, value, version: signal.id },
      timeoutMs: onSignalTimeoutMs ?? ON_SIGNAL_TIMEOUT_MS,
      logKey: `${actor.run.dag_id}/${actor.id}/signals/${taskId}-${signal.id}.log`,
    };
    this.#options.admission.executors.of(executor).submit([reaction]);
  }
}

/**
 * The signals for the `onSignal` of one task, handled one after the other in a process of its own. The queue has its own
 * position in the log: while a call runs, hangs or fails, later signals wait here; rules and other tasks continue.
 *
 * When `onSignal` keeps failing, the signal becomes a dead letter and has no effect. A retried dead letter is handled before
 * the log, and is deleted together with the effect of the answer. If the process dies before that, the letter stays and is
 * handled again; if it dies after that, the letter is gone.
 */
import { randomUUID } from "node:crypto";
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { SignalAction } from "../../execute/contract.ts";
import type { Drive, RunModel } from "../../model/index.ts";
import type { DeadLetterWrite } from "../../store/drive/run-drives.ts";
import type { SignalRow } from "../../store/signal/signals-read.ts";
import type { SignalInbox } from "./signal-inbox.ts";

/** A call of the `onSignal` of a task. */
export interface Question {
  readonly id: string;
  readonly taskId: string;
  readonly signal: SignalRow;
}

interface PendingReaction {
  readonly question: Question;
  attempts: number;
  /** When to call `onSignal`, for the first time or again after a failure. null: the call is running. */
  againAt: number | null;
  answer: SignalAction | null;
  /** The error of the last call. */
  error: string | null;
}

interface Answer {
  readonly action: SignalAction | null;
  readonly error: ErrorFacts | null;
}

/** An `onSignal` has used up its calls for a signal. */
export interface Failure {
  readonly taskId: string;
  readonly key: string;
  readonly version: number;
  readonly error: string;
  readonly letter: DeadLetterWrite | null;
}

const MAX_ATTEMPTS = 5;
const FIRST_DELAY_MS = 1_000;
const SHOWN_CHARACTERS = 500;

const ACTIONS = { START: "start", RESTART: "restart", STOP: "stop" } as const;

export class OnSignalQueue {
  readonly inbox: SignalInbox;
  readonly taskId: string;
  /** The name under which its dead letters are stored. */
  readonly #listener: string;
  /** Dead letters to retry, before all other signals. */
  readonly #letters: SignalRow[];
  /** The call for the first letter, or for the first signal of the inbox. */
  #pending: PendingReaction | null = null;

  constructor(task: {
    readonly taskId: string;
    readonly listener: string;
    readonly inbox: SignalInbox;
    readonly letters: readonly SignalRow[];
  }) {
    this.taskId = task.taskId;
    this.#listener = task.listener;
    this.inbox = task.inbox;
    this.#letters = [...task.letters];
  }

  /** Carries out the last answer and returns the next call. null: none, or not yet. */
  next(model: RunModel, now: number, letters: DeadLetterWrite[]): Question | null {
    const closed = model.drive?.closed ?? null;
    if (closed !== null) {
      this.#abandon(closed, letters);
      return null;
    }
    for (;;) {
      const letter = this.#letters[0];
      const signal = letter ?? this.inbox.first;
      if (!signal) return null;
      const asked = this.#pending ?? this.#remember(signal, model.drive);
      this.#pending = asked;
      if (asked.answer === null) {
        if (asked.againAt === null || asked.againAt > now) return null;
        asked.againAt = null;
        return asked.question;
      }
      if (letter) {
        this.#letters.shift();
        const hasFailed = asked.attempts >= MAX_ATTEMPTS;
        letters.push({ ...this.#letter(asked), ...(hasFailed ? {} : { error: null }), isRetried: true });
      } else this.inbox.shift();
      this.#carryOut(model, asked.answer, signal, now);
      this.#pending = null;
    }
  }

  /** Receives the answer or the error of a call. Returns the failure if no call is left. */
  answered(id: string, answer: Answer, { drive, now }: { drive: Drive | null; now: number }): Failure | null {
    const asked = this.#pending;
    if (asked?.question.id !== id) return null;
    const { taskId } = this;
    const { signal } = asked.question;
    drive?.setFailedOnSignal(taskId, null);
    if (answer.action !== null) {
      asked.answer = answer.action;
      return null;
    }
    asked.attempts++;
    const { attempts } = asked;
    const error = answer.error?.message ?? "onSignal gave no answer";
    asked.error = error;
    const { id: version, key } = signal;
    if (attempts < MAX_ATTEMPTS) {
      asked.againAt = now + FIRST_DELAY_MS * 2 ** (attempts - 1);
      drive?.setFailedOnSignal(taskId, {
        key,
        version,
        attempts,
        error: shown(error),
        againAt: asked.againAt,
      });
      return null;
    }
    asked.answer = "NONE";
    // A retried letter is updated when it leaves the queue.
    return { taskId, key, version, error, letter: this.#letters.length > 0 ? null : this.#letter(asked) };
  }

  /** When a failed `onSignal` is called again; null: none has failed. */
  get nextAt(): number | null {
    return this.#pending?.againAt ?? null;
  }

  /** The count of stored failures continues after a reload of the run, also by another owner. */
  #remember(signal: SignalRow, drive: Drive | null): PendingReaction {
    const stored = drive?.failedOnSignal(this.taskId) ?? null;
    const before = stored?.version === signal.id ? stored : null;
    return {
      question: { id: randomUUID(), taskId: this.taskId, signal },
      attempts: before?.attempts ?? 0,
      againAt: before?.againAt ?? Number.NEGATIVE_INFINITY,
      answer: null,
      error: before?.error ?? null,
    };
  }

  /** The run is closed: answers would have no effect, so `onSignal` is not called. Dead letters stay. */
  #abandon(closed: string, letters: DeadLetterWrite[]): void {
    const error = `the run was closed by ${closed}`;
    const listener = this.#listener;
    for (const [index, { id }] of this.#letters.entries()) {
      const attempts = index === 0 ? (this.#pending?.attempts ?? 0) : 0;
      letters.push({ listener, signalId: id, error, attempts, isRetried: true });
    }
    this.#letters.length = 0;
    this.inbox.clear();
    this.#pending = null;
  }

  #letter({ attempts, error, question: { signal } }: PendingReaction): DeadLetterWrite {
    return { listener: this.#listener, signalId: signal.id, error, attempts };
  }

  #carryOut(model: RunModel, answer: SignalAction, { id, key }: SignalRow, now: number): void {
    if (answer === "NONE") return;
    const order = { taskId: this.taskId, action: ACTIONS[answer], reason: key, by: [id] };
    model.apply({ type: "ordered", ...order }, now);
  }
}

/** One line for lists; the log has the whole error. */
function shown(error: string): string {
  return error.length > SHOWN_CHARACTERS ? `${error.slice(0, SHOWN_CHARACTERS)}…` : error;
}

/**
 * How an owned run hears the signal log: every signal that may concern it, in the order of the log, once. Its position
 * moves with what was heard and is stored with what came of it.
 *
 * A task with an `onSignal` has to be asked what a signal means to it, in a process of its own. Until it has answered,
 * what follows waits here; nobody else's run does. An `onSignal` that keeps failing is answered for: nothing happens,
 * and the signal is among the dead letters.
 */
import { randomUUID } from "node:crypto";
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { SignalAction } from "../execute/contract.ts";
import { type Heard, namesMatch, type RunModel, type RunName } from "../model/index.ts";
import { senderName } from "../signal/sender-name.ts";
import { isReserved } from "../signal/signal.ts";
import type { DriveRow, StoredOrder } from "../store/run-drives.ts";
import { comparePositions, type LogPosition, laterPosition } from "../store/signals-position.ts";
import type { SignalRow } from "../store/signals-read.ts";
import type { DagVersion } from "./version-cache.ts";

/** A question to the `onSignal` of a task. */
export interface Question {
  readonly id: string;
  readonly taskId: string;
  readonly signal: SignalRow;
}

/** A signal that a task could not deal with. */
export interface DeadLetter {
  readonly listener: string;
  readonly signalId: number;
  readonly error: string;
  readonly attempts: number;
}

export interface SignalName {
  readonly namespace: string;
  readonly key: string;
}

interface Asked {
  readonly question: Question;
  attempts: number;
  /** Set: it failed, and is asked again then. */
  againAt: number | null;
  answer: SignalAction | null;
}

/** So many wait here at most; the rest stays in the log. */
const INBOX = 1_000;
const LATE_MS = 60_000;
const MAX_ATTEMPTS = 5;
const FIRST_DELAY_MS = 1_000;

const ACTIONS = { START: "start", RESTART: "restart", STOP: "stop" } as const;

export class RunEars {
  /** What may concern the run: what its rules and tasks listen to ("*" stands for any text). */
  readonly names: readonly SignalName[];
  /** It listens to what the engine itself tells. */
  readonly wantsStates: boolean;
  readonly #run: RunName;
  readonly #since: Date;
  readonly #reacting: readonly { readonly taskId: string; readonly names: readonly SignalName[] }[];
  readonly #orders: readonly StoredOrder[];
  readonly #inbox: SignalRow[] = [];
  readonly #asked = new Map<string, Asked>();
  #position: LogPosition;
  #storedPosition: LogPosition;
  #storedAt = performance.now();
  #isStored = false;
  #readTo: LogPosition;

  constructor(run: RunName, version: DagVersion, row: DriveRow) {
    this.#run = run;
    this.#since = row.since;
    this.#orders = row.orders;
    this.#position = { tx: row.tx, id: row.signal_id };
    this.#storedPosition = this.#position;
    this.#readTo = this.#position;
    this.#reacting = version.manifest.tasks.flatMap(({ reacts, taskId }) =>
      reacts ? [{ taskId, names: reacts }] : [],
    );
    const leaves = version.rules.rules.flatMap(({ condition }) => condition.leaves);
    this.names = [
      ...leaves.filter((leaf) => leaf.kind === "signal"),
      ...this.#reacting.flatMap(({ names }) => names),
    ];
    this.wantsStates = this.names.some(({ namespace }) => isReserved(namespace));
  }

  /** Once after the run was loaded: what was ordered by hand since. The owner's next batch says that it is done. */
  obey(model: RunModel, now: number): void {
    for (const { action, by, taskId } of this.#orders) {
      if (taskId !== null) model.apply({ type: "ordered", taskId, action, reason: by }, now);
      else model.apply({ type: "closed", reason: by }, now);
    }
  }

  /** Orders were carried out that are still in the row, whatever came of them. */
  get hasOrders(): boolean {
    return this.#orders.length > 0 && !this.#isStored;
  }

  /** Read up to here: nothing before it is wanted again. */
  get readTo(): LogPosition {
    return this.#readTo;
  }

  /** false: it has too much to do as it is. */
  get isWilling(): boolean {
    return this.#inbox.length < INBOX;
  }

  get isEmpty(): boolean {
    return this.#inbox.length === 0;
  }

  /** What came after `readTo`, up to a position. */
  take(signals: readonly SignalRow[], upTo: LogPosition): void {
    for (const signal of signals) {
      if (comparePositions(signal, this.#readTo) > 0 && signal.created_at >= this.#since)
        this.#inbox.push(signal);
    }
    this.#readTo = laterPosition(this.#readTo, upTo);
    if (this.#inbox.length === 0) this.#position = this.#readTo;
  }

  /** Puts what has arrived to the run, as far as nobody has to be asked first; answers who has to be. */
  hear(model: RunModel, now: number): Question[] {
    for (let signal = this.#inbox[0]; signal; signal = this.#inbox[0]) {
      const questions = this.#ask(signal, now);
      if (questions.length > 0 || this.#isWaiting()) return questions;
      this.#inbox.shift();
      this.#put(model, signal, now);
      this.#asked.clear();
      this.#position = this.#inbox.length === 0 ? this.#readTo : { tx: signal.tx, id: signal.id };
    }
    return [];
  }

  /** The answer of an `onSignal`. A dead letter: it has failed too often, and counts as NONE. */
  answered(
    id: string,
    answer: { readonly action: SignalAction | null; readonly error: ErrorFacts | null },
    now: number,
  ): DeadLetter | null {
    const asked = this.#asked.get(id);
    if (!asked) return null;
    if (answer.action !== null) {
      asked.answer = answer.action;
      return null;
    }
    asked.attempts++;
    if (asked.attempts < MAX_ATTEMPTS) {
      asked.againAt = now + FIRST_DELAY_MS * 2 ** (asked.attempts - 1);
      return null;
    }
    asked.answer = "NONE";
    const { signal, taskId } = asked.question;
    const listener = senderName({ ...this.#run, taskId });
    const error = answer.error?.message ?? "onSignal gave no answer";
    return { listener, signalId: signal.id, error, attempts: asked.attempts };
  }

  /** When an `onSignal` that failed is asked again; null: none has. */
  nextQuestionAt(): number | null {
    let next: number | null = null;
    for (const { againAt } of this.#asked.values())
      if (againAt !== null && (next === null || againAt < next)) next = againAt;
    return next;
  }

  /** Where it is now, to be stored. */
  takePosition(): LogPosition {
    this.#storedAt = performance.now();
    this.#isStored = true;
    this.#storedPosition = this.#position;
    return this.#position;
  }

  /** The stored position has lagged behind for so long that retention waits for it: to be stored by itself. */
  get isLate(): boolean {
    if (comparePositions(this.#position, this.#storedPosition) <= 0) return false;
    return performance.now() - this.#storedAt > LATE_MS;
  }

  #ask(signal: SignalRow, now: number): Question[] {
    const questions: Question[] = [];
    for (const { taskId, names } of this.#reacting) {
      if (!names.some((name) => namesMatch(name, signal))) continue;
      const before = [...this.#asked.values()].find(({ question }) => question.taskId === taskId);
      if (before && (before.answer !== null || before.againAt === null || before.againAt > now)) continue;
      const question = before?.question ?? { id: randomUUID(), taskId, signal };
      this.#asked.set(question.id, {
        question,
        attempts: before?.attempts ?? 0,
        againAt: null,
        answer: null,
      });
      questions.push(question);
    }
    return questions;
  }

  #isWaiting(): boolean {
    return [...this.#asked.values()].some(({ answer }) => answer === null);
  }

  #put(model: RunModel, signal: SignalRow, now: number): void {
    const { id: version, key, namespace, sender, value } = signal;
    const isOwn = sender.startsWith(senderName({ ...this.#run, taskId: "" }));
    const from = isOwn ? { dagId: this.#run.dagId, runId: this.#run.runId } : null;
    const heard: Heard = { kind: "signal", namespace, key, value, version, from };
    model.apply({ type: "heard", heard }, now);
    for (const { taskId } of this.#reacting) {
      const asked = [...this.#asked.values()].find(({ question }) => question.taskId === taskId);
      if (!asked?.answer || asked.answer === "NONE" || model.drive?.closed !== null) continue;
      model.apply({ type: "ordered", taskId, action: ACTIONS[asked.answer], reason: key }, now);
    }
  }
}

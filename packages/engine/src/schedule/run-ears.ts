/**
 * How an owned run hears the signal log: every signal that may concern it, in the order of the log, once. Its position
 * moves with what was heard and is stored with what came of it.
 *
 * A task with an `onSignal` has to be asked what a signal means to it, in a process of its own. Until it has answered,
 * what follows waits here; nobody else's run does. An `onSignal` that keeps failing is answered for: nothing happens,
 * and the signal is among the dead letters. Somebody may have it asked once more: then the letter comes before what is
 * in the log, and goes with the effect of the answer. Who dies before that leaves the letter as it was, to be asked
 * about again; who dies after it finds none.
 */
import { randomUUID } from "node:crypto";
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { SignalAction } from "../execute/contract.ts";
import {
  type Asking,
  type Drive,
  type Heard,
  namesMatch,
  type RunModel,
  type RunName,
} from "../model/index.ts";
import { senderName } from "../signal/sender-name.ts";
import { isReserved } from "../signal/signal.ts";
import type { DeadLetterWrite, DriveRow, RetriedLetter, StoredOrder } from "../store/run-drives.ts";
import { comparePositions, type LogPosition, laterPosition } from "../store/signals-position.ts";
import type { SignalRow } from "../store/signals-read.ts";
import type { DagVersion } from "./version-cache.ts";

/** A question to the `onSignal` of a task. */
export interface Question {
  readonly id: string;
  readonly taskId: string;
  readonly signal: SignalRow;
  /** It has been a dead letter. */
  readonly isRetried: boolean;
}

export interface SignalName {
  readonly namespace: string;
  readonly key: string;
}

interface Asked {
  readonly question: Question;
  attempts: number;
  /** Set: it is to be asked then, for the first time or because it failed. null: it was asked. */
  againAt: number | null;
  answer: SignalAction | null;
  /** Of its last failure. */
  error: string | null;
}

interface Answer {
  readonly action: SignalAction | null;
  readonly error: ErrorFacts | null;
}

/** An `onSignal` has failed for good on a signal. */
export interface Failure {
  readonly taskId: string;
  readonly key: string;
  readonly version: number;
  readonly error: string;
  readonly letter: DeadLetterWrite | null;
}

/** So many wait here at most; the rest stays in the log. */
const INBOX = 1_000;
const LATE_MS = 60_000;
const MAX_ATTEMPTS = 5;
const FIRST_DELAY_MS = 1_000;
const SHOWN_CHARACTERS = 500;

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
  /** Dead letters to be asked about once more, before anything else. */
  readonly #letters: { readonly taskId: string; readonly signal: SignalRow }[];
  readonly #asked = new Map<string, Asked>();
  #position: LogPosition;
  #storedPosition: LogPosition;
  #storedAt = performance.now();
  #isStored = false;
  #readTo: LogPosition;

  constructor(
    run: RunName,
    version: DagVersion,
    row: DriveRow & { readonly letters?: readonly RetriedLetter[] },
  ) {
    this.#run = run;
    this.#since = row.since;
    this.#orders = row.orders;
    this.#position = { tx: row.tx, id: row.signal_id };
    this.#storedPosition = this.#position;
    this.#readTo = this.#position;
    this.#reacting = version.manifest.tasks.flatMap(({ reacts, taskId }) =>
      reacts ? [{ taskId, names: reacts }] : [],
    );
    this.#letters = (row.letters ?? []).flatMap((signal) => {
      const task = this.#reacting.find(({ taskId }) => senderName({ ...run, taskId }) === signal.listener);
      return task ? [{ taskId: task.taskId, signal }] : [];
    });
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
  hear(model: RunModel, now: number, letters: DeadLetterWrite[] = []): Question[] {
    for (let letter = this.#letters[0]; letter; letter = this.#letters[0]) {
      const { signal, taskId } = letter;
      const questions = this.#ask(signal, { now, only: taskId, drive: model.drive });
      if (questions.length > 0 || this.#isWaiting()) return questions;
      this.#letters.shift();
      letters.push(this.#settle(model, letter, now));
      this.#asked.clear();
    }
    for (let signal = this.#inbox[0]; signal; signal = this.#inbox[0]) {
      const questions = this.#ask(signal, { now, only: null, drive: model.drive });
      if (questions.length > 0 || this.#isWaiting()) return questions;
      this.#inbox.shift();
      this.#put(model, signal, now);
      this.#asked.clear();
      this.#position = this.#inbox.length === 0 ? this.#readTo : { tx: signal.tx, id: signal.id };
    }
    return [];
  }

  /** The answer of an `onSignal`. A dead letter: it has failed too often, and counts as NONE. */
  answered(id: string, answer: Answer, { drive, now }: { drive: Drive | null; now: number }): Failure | null {
    const asked = this.#asked.get(id);
    if (!asked) return null;
    const { isRetried, signal, taskId } = asked.question;
    drive?.setAsking(taskId, null);
    if (answer.action !== null) {
      asked.answer = answer.action;
      return null;
    }
    asked.attempts++;
    const { attempts } = asked;
    const error = answer.error?.message ?? "onSignal gave no answer";
    asked.error = error;
    if (attempts < MAX_ATTEMPTS) {
      asked.againAt = now + FIRST_DELAY_MS * 2 ** (attempts - 1);
      const { id: version, key } = signal;
      drive?.setAsking(taskId, { key, version, attempts, error: shown(error), againAt: asked.againAt });
      return null;
    }
    asked.answer = "NONE";
    // A letter that was tried again is settled where its turn is over.
    return {
      taskId,
      key: signal.key,
      version: signal.id,
      error,
      letter: isRetried ? null : this.#letter(asked),
    };
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

  /** @param only Of a dead letter: it concerns this task alone, whatever its signals are by now. */
  #ask(signal: SignalRow, { drive, now, only }: { now: number; only: string | null; drive: Drive | null }) {
    const questions: Question[] = [];
    for (const { taskId, names } of this.#reacting) {
      if (only === null ? !names.some((name) => namesMatch(name, signal)) : taskId !== only) continue;
      const question = { id: randomUUID(), taskId, signal, isRetried: only !== null };
      const asked = this.#askedOf(taskId) ?? this.#remember(question, drive?.asking(taskId) ?? null);
      if (asked.answer !== null || asked.againAt === null || asked.againAt > now) continue;
      asked.againAt = null;
      questions.push(asked.question);
    }
    return questions;
  }

  #askedOf(taskId: string): Asked | undefined {
    for (const asked of this.#asked.values()) if (asked.question.taskId === taskId) return asked;
    return undefined;
  }

  /** Failures that were stored count on, whoever had asked: a run that is read again is not asked from the beginning. */
  #remember(question: Question, stored: Asking | null): Asked {
    const before = stored?.version === question.signal.id ? stored : null;
    const asked: Asked = {
      question,
      attempts: before?.attempts ?? 0,
      againAt: before?.againAt ?? Number.NEGATIVE_INFINITY,
      answer: null,
      error: before?.error ?? null,
    };
    this.#asked.set(question.id, asked);
    return asked;
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
    this.#obeyAnswers(model, { key, version }, now);
  }

  /** What came of a dead letter that was asked about once more: it goes, or stays with what is wrong now. */
  #settle(model: RunModel, letter: { readonly taskId: string; readonly signal: SignalRow }, now: number) {
    const asked = this.#askedOf(letter.taskId)!;
    const written = { ...this.#letter(asked), isRetried: true };
    if (asked.attempts >= MAX_ATTEMPTS) return written;
    const closed = model.drive?.closed ?? null;
    if (closed !== null) return { ...written, error: `the run was closed by ${closed}` };
    this.#obeyAnswers(model, { key: letter.signal.key, version: letter.signal.id }, now);
    return { ...written, error: null };
  }

  #letter({ attempts, error, question: { signal, taskId } }: Asked): DeadLetterWrite {
    const listener = senderName({ ...this.#run, taskId });
    return { listener, signalId: signal.id, error, attempts };
  }

  #obeyAnswers(model: RunModel, { key, version }: { key: string; version: number }, now: number): void {
    for (const { taskId } of this.#reacting) {
      const asked = this.#askedOf(taskId);
      if (!asked?.answer || asked.answer === "NONE" || model.drive?.closed !== null) continue;
      model.apply(
        { type: "ordered", taskId, action: ACTIONS[asked.answer], reason: key, by: [version] },
        now,
      );
    }
  }
}

/** What people are shown in one line; its log has all of it. */
function shown(error: string): string {
  return error.length > SHOWN_CHARACTERS ? `${error.slice(0, SHOWN_CHARACTERS)}…` : error;
}

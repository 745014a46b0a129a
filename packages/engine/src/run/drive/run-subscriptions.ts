/**
 * How an owned run reads the signal log: each matching signal once, in the order of the log. Its rules, and each task with
 * an `onSignal`, have their own position (`SignalInbox`), so that rules do not wait for answers. The positions are stored
 * in the batch that stores the effects of the signals: the earliest as the position of the run, which retention respects,
 * the others as ahead of it.
 */
import type { Drive, Fact, RunModel, RunName } from "../../model/index.ts";
import { senderName } from "../../model/signal/sender-name.ts";
import { isReserved } from "../../model/signal/signal-names.ts";
import type {
  AheadPositions,
  DeadLetterWrite,
  DriveRow,
  ManualCommand,
  RetriedLetter,
} from "../../store/drive/run-drives.ts";
import { comparePositions, type LogPosition } from "../../store/signal/signals-position.ts";
import type { SignalRow } from "../../store/signal/signals-read.ts";
import type { DagVersion } from "../loaded/version-cache.ts";
import { type Failure, OnSignalQueue, type Question } from "./on-signal-queue.ts";
import { SignalInbox } from "./signal-inbox.ts";

const LATE_MS = 60_000;

export class RunSubscriptions {
  /** Whether the run listens to signals of the engine. */
  readonly wantsStates: boolean;
  /** All inboxes of this run. */
  readonly inboxes: readonly SignalInbox[];
  readonly #run: RunName;
  readonly #manualCommands: readonly ManualCommand[];
  readonly #rules: SignalInbox;
  readonly #queues: readonly OnSignalQueue[];
  #storedPosition: LogPosition;
  #storedAt = performance.now();
  #isStored = false;

  constructor(
    run: RunName,
    version: DagVersion,
    row: DriveRow & { readonly letters?: readonly RetriedLetter[] },
  ) {
    this.#run = run;
    this.#manualCommands = row.manual_commands;
    const position = { tx: row.tx, id: row.signal_id };
    this.#storedPosition = position;
    const { ahead, letters = [], since_micros: sinceMicros } = row;
    const leaves = version.rules.rules.flatMap(({ condition }) => condition.leaves);
    const names = leaves.filter((leaf) => leaf.kind === "signal");
    this.#rules = new SignalInbox(names, { position: ahead?.rules ?? position, sinceMicros });
    this.#queues = version.manifest.tasks.flatMap(({ reacts, taskId }) => {
      if (!reacts) return [];
      const listener = senderName({ ...run, taskId });
      const inbox = new SignalInbox(reacts, { position: ahead?.tasks?.[taskId] ?? position, sinceMicros });
      const own = letters.filter((letter) => letter.listener === listener);
      return [new OnSignalQueue({ taskId, listener, inbox, letters: own })];
    });
    this.inboxes = [this.#rules, ...this.#queues.map(({ inbox }) => inbox)];
    this.wantsStates = this.inboxes.some((inbox) =>
      inbox.names.some(({ namespace }) => isReserved(namespace)),
    );
  }

  /** Carries out manual commands, once after the run was loaded. The owner's next batch marks them as done. */
  applyManualCommands(model: RunModel, now: number): void {
    for (const { action, by, taskId } of this.#manualCommands) {
      if (taskId !== null) model.apply({ type: "ordered", taskId, action, reason: by }, now);
      else model.apply({ type: "closed", reason: by }, now);
    }
  }

  /** Manual commands were carried out that are still in the row. */
  get hasManualCommands(): boolean {
    return this.#manualCommands.length > 0 && !this.#isStored;
  }

  /** Evaluates the rules for new signals and carries out answers. Returns the next calls of `onSignal`. */
  apply(model: RunModel, now: number, letters: DeadLetterWrite[] = []): Question[] {
    for (let signal = this.#rules.first; signal; signal = this.#rules.first) {
      this.#rules.shift();
      this.#applySignal(model, signal, now);
    }
    return this.#queues.flatMap((queue) => queue.next(model, now, letters) ?? []);
  }

  /** Receives the answer of an `onSignal`. Returns a failure if it has failed too often, which counts as NONE. */
  answered(
    { action, error, reactionId }: Parameters<OnSignalQueue["answered"]>[1] & { readonly reactionId: string },
    at: { drive: Drive | null; now: number },
  ): Failure | null {
    for (const queue of this.#queues) {
      const failure = queue.answered(reactionId, { action, error }, at);
      if (failure) return failure;
    }
    return null;
  }

  /** When a failed `onSignal` is called again; null: none has failed. */
  nextQuestionAt(): number | null {
    let next: number | null = null;
    for (const { nextAt } of this.#queues)
      if (nextAt !== null && (next === null || nextAt < next)) next = nextAt;
    return next;
  }

  /** The positions to store. */
  drainPosition(): { readonly position: LogPosition; readonly ahead: AheadPositions | null } {
    this.#storedAt = performance.now();
    this.#isStored = true;
    const position = this.#position;
    this.#storedPosition = position;
    const isAhead = (inbox: SignalInbox) => comparePositions(inbox.position, position) > 0;
    const tasks = this.#queues
      .filter(({ inbox }) => isAhead(inbox))
      .map(({ inbox, taskId }) => [taskId, inbox.position] as const);
    const rules = isAhead(this.#rules) ? { rules: this.#rules.position } : null;
    const ahead = { ...rules, ...(tasks.length > 0 && { tasks: Object.fromEntries(tasks) }) };
    return { position, ahead: Object.keys(ahead).length > 0 ? ahead : null };
  }

  /** The stored position is so old that retention waits for it: store it without another reason. */
  get isLate(): boolean {
    if (comparePositions(this.#position, this.#storedPosition) <= 0) return false;
    return performance.now() - this.#storedAt > LATE_MS;
  }

  /** The earliest position of its inboxes. */
  get #position(): LogPosition {
    return this.inboxes
      .map(({ position }) => position)
      .reduce((a, b) => (comparePositions(a, b) < 0 ? a : b));
  }

  #applySignal(model: RunModel, signal: SignalRow, now: number): void {
    const { id: version, key, namespace, sender, value } = signal;
    const isOwn = sender.startsWith(senderName({ ...this.#run, taskId: "" }));
    const from = isOwn ? { dagId: this.#run.dagId, runId: this.#run.runId } : null;
    const heard: Fact = { kind: "signal", namespace, key, value, version, from };
    model.apply({ type: "heard", heard }, now);
  }
}

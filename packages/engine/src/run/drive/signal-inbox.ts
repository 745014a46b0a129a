/**
 * A reader of the signal log within a run: its rules, or the `onSignal` of one task. It has its own position, so that a
 * slow reader does not delay the others. Signals arrive in the order of the log, each once.
 */
import { hasWildcard, namesMatch } from "../../model/index.ts";
import { comparePositions, type LogPosition, laterPosition } from "../../store/signal/signals-position.ts";
import type { SignalRow } from "../../store/signal/signals-read.ts";

export interface SignalName {
  readonly namespace: string;
  readonly key: string;
}

/** Maximum number of signals here; the rest stays in the log. */
const MAX_WAITING = 1_000;

export class SignalInbox {
  /** The names of matching signals ("*": any text). */
  readonly names: readonly SignalName[];
  readonly #sinceMicros: number;
  readonly #signals: SignalRow[] = [];
  #readTo: LogPosition;
  #position: LogPosition;

  /** @param start.sinceMicros Earlier signals are skipped, even if their position comes later. */
  constructor(
    names: readonly SignalName[],
    start: { readonly position: LogPosition; readonly sinceMicros: number },
  ) {
    this.names = names;
    this.#sinceMicros = start.sinceMicros;
    this.#position = start.position;
    this.#readTo = start.position;
  }

  /** Signals up to here have been read. */
  get readTo(): LogPosition {
    return this.#readTo;
  }

  /** Signals up to here have been handled. */
  get position(): LogPosition {
    return this.#position;
  }

  /** false: the inbox is full. */
  get isWilling(): boolean {
    return this.#signals.length < MAX_WAITING;
  }

  get isEmpty(): boolean {
    return this.#signals.length === 0;
  }

  get first(): SignalRow | undefined {
    return this.#signals[0];
  }

  /** Adds the signals after `readTo`, up to a position. */
  add(signals: readonly SignalRow[], upTo: LogPosition): void {
    for (const signal of signals) {
      if (comparePositions(signal, this.#readTo) > 0 && signal.created_micros >= this.#sinceMicros)
        this.#signals.push(signal);
    }
    this.#readTo = laterPosition(this.#readTo, upTo);
    if (this.isEmpty) this.#position = this.#readTo;
  }

  /** The first signal has been handled. */
  shift(): void {
    const signal = this.#signals.shift();
    if (signal) this.#position = this.isEmpty ? this.#readTo : { tx: signal.tx, id: signal.id };
  }

  /** Drops all waiting signals. */
  clear(): void {
    this.#signals.length = 0;
    this.#position = this.#readTo;
  }
}

/** The inboxes of a job by the names of signals: exact names by an index, patterns one by one. */
export class InboxIndex {
  readonly #exact = new Map<string, Set<SignalInbox>>();
  readonly #patterns = new Map<SignalInbox, readonly SignalName[]>();

  add(inbox: SignalInbox): void {
    const patterns = inbox.names.filter(hasWildcard);
    if (patterns.length > 0) this.#patterns.set(inbox, patterns);
    for (const name of inbox.names) {
      if (hasWildcard(name)) continue;
      const inboxes = this.#exact.get(textOf(name)) ?? new Set();
      this.#exact.set(textOf(name), inboxes.add(inbox));
    }
  }

  drop(inbox: SignalInbox): void {
    this.#patterns.delete(inbox);
    for (const name of inbox.names) {
      const inboxes = this.#exact.get(textOf(name));
      if (inboxes?.delete(inbox) && inboxes.size === 0) this.#exact.delete(textOf(name));
    }
  }

  concernedBy(signal: SignalName): Iterable<SignalInbox> {
    const sure = this.#exact.get(textOf(signal));
    if (this.#patterns.size === 0) return sure ?? [];
    const found = new Set(sure);
    for (const [inbox, names] of this.#patterns)
      if (names.some((name) => namesMatch(name, signal))) found.add(inbox);
    return found;
  }
}

function textOf({ key, namespace }: SignalName): string {
  return `${namespace}\n${key}`;
}

/**
 * A reader of the signal log within a run: its rules, or the `onSignal` of one task. It has its own position, so that a
 * slow reader does not delay the others. Signals arrive in the order of the log, each once.
 */
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

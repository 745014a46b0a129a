/**
 * The counted starts of one task that are not carried out yet, oldest first. Each has a number, without gaps. So the stored
 * starts and the current starts are two ranges, and only their difference is written: a burst of thousands costs each start
 * one row, once.
 */

/**
 * The signals that caused a try, by version: no values, so that the stored state stays small. Signals of a restart are
 * separate: a restarted try keeps its original cause, and the next restart replaces them.
 */
export interface Cause {
  readonly start?: readonly number[];
  readonly restart?: readonly number[];
}

export interface StoredStart {
  readonly taskId: string;
  readonly ordinal: number;
  /** null: not caused by a signal. */
  readonly cause: Cause | null;
}

/** The changes to store. */
export interface StartChanges {
  readonly taskId: string;
  /** The starts in [from, before) were carried out or dropped. */
  readonly from: number;
  readonly before: number;
  readonly added: readonly StoredStart[];
}

interface Range {
  readonly from: number;
  /** The first number after the range. */
  readonly before: number;
}

export class WaitingStarts {
  readonly #taskId: string;
  #causes: (Cause | null)[];
  /** The number of the oldest. */
  #first: number;
  #stored: Range;
  /** The stored range before the last `takeChanges`. */
  #storedBefore: Range;

  /** @param stored In their order. */
  constructor(taskId: string, stored: readonly StoredStart[] = []) {
    this.#taskId = taskId;
    this.#causes = stored.map(({ cause }) => cause);
    this.#first = stored[0]?.ordinal ?? 0;
    this.#stored = { from: this.#first, before: this.#first + stored.length };
    this.#storedBefore = this.#stored;
  }

  get count(): number {
    return this.#causes.length;
  }

  add(cause: Cause | null): void {
    this.#causes.push(cause);
  }

  /** Consumes the oldest start and returns its cause. */
  consume(): Cause | null {
    if (this.#causes.length === 0) return null;
    this.#first++;
    return this.#causes.shift() ?? null;
  }

  /** @param keep How many of the newest stay. */
  forget(keep = 0): void {
    const forgotten = Math.max(0, this.#causes.length - keep);
    this.#first += forgotten;
    this.#causes = this.#causes.slice(forgotten);
  }

  /** The changes since the last call; null: none. A start added and consumed in between is not included. */
  drainChanges(): StartChanges | null {
    const { before: storedBefore, from } = this.#stored;
    const first = this.#first;
    const next = first + this.#causes.length;
    this.#storedBefore = this.#stored;
    if (from === first && storedBefore === next) return null;
    this.#stored = { from: first, before: next };
    const isNew = Math.max(first, storedBefore);
    const added = this.#causes
      .slice(isNew - first)
      .map((cause, index) => ({ taskId: this.#taskId, ordinal: isNew + index, cause }));
    return { taskId: this.#taskId, from, before: Math.min(first, storedBefore), added };
  }

  /** The last changes were not stored. */
  restoreChanges(): void {
    this.#stored = this.#storedBefore;
  }
}

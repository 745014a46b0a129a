/**
 * The starts of one task that were counted and are not carried out yet, oldest first. Each has a number, and the
 * numbers of those that wait have no gaps: what is in the database and what should be there are two ranges, and the
 * difference is all that is written. A burst of thousands costs each of its starts one row, once.
 */

/**
 * The signals behind a try, by their versions: no values, so that what is stored stays small. Those of a restart stand
 * apart: what was stopped begins again with what had started it, and the next restart takes their place.
 */
export interface Cause {
  readonly start?: readonly number[];
  readonly restart?: readonly number[];
}

export interface StoredStart {
  readonly taskId: string;
  readonly ordinal: number;
  /** null: due to no signal. */
  readonly cause: Cause | null;
}

/** What has to change in the database. */
export interface StartChanges {
  readonly taskId: string;
  /** Carried out or forgotten: those from `from` on, before `before`. */
  readonly from: number;
  readonly before: number;
  readonly added: readonly StoredStart[];
}

interface Range {
  readonly from: number;
  /** The first that is not in it. */
  readonly before: number;
}

export class WaitingStarts {
  readonly #taskId: string;
  #causes: (Cause | null)[];
  /** The number of the oldest. */
  #first: number;
  #stored: Range;
  /** What was stored before the last `takeChanges`. */
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

  /** The oldest is carried out: what it is due to. */
  take(): Cause | null {
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

  /** Since the last call; null: none. One that was added and carried out in between is not among them. */
  takeChanges(): StartChanges | null {
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

  /** What was taken last could not be stored. */
  giveBack(): void {
    this.#stored = this.#storedBefore;
  }
}

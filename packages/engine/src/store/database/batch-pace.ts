/** Rows per transaction, adapted to keep transactions short: fewer after a slow one, more after a fast one. */
const SLOW_MS = 500;
const QUICK_MS = 100;

export class BatchPace {
  readonly #most: number;
  #rows: number;

  constructor(most: number) {
    this.#most = most;
    this.#rows = Math.max(1, Math.ceil(most / 10));
  }

  get rows(): number {
    return this.#rows;
  }

  took(ms: number): void {
    if (ms > SLOW_MS) this.#rows = Math.max(1, Math.floor(this.#rows / 2));
    else if (ms < QUICK_MS) this.#rows = Math.min(this.#most, this.#rows * 2);
  }
}

/** The polls that are due: now, or at a set time. */
export class PollSchedule<Name extends string> {
  readonly #all: readonly Name[];
  readonly #due: Set<Name>;
  readonly #timers = new Map<Name, NodeJS.Timeout>();
  readonly #wake: () => void;
  #isClosed = false;

  /** All polls are due at the start. */
  constructor(all: readonly Name[], wake: () => void) {
    this.#all = all;
    this.#due = new Set(all);
    this.#wake = wake;
  }

  add(...names: readonly Name[]): void {
    for (const name of names) this.#due.add(name);
  }

  addAll(): void {
    this.add(...this.#all);
  }

  /** As `add`, and wakes the loop. */
  now(...names: readonly Name[]): void {
    this.add(...names);
    this.#wake();
  }

  /** Replaces an earlier time: the caller has just polled. */
  later(name: Name, ms: number): void {
    clearTimeout(this.#timers.get(name));
    if (this.#isClosed) return;
    this.#timers.set(
      name,
      setTimeout(() => this.now(name), Math.min(Math.max(ms, 0), 2 ** 30)),
    );
  }

  /** Runs the work if it is due; after a failure it stays due. */
  async runIfDue(name: Name, work: () => Promise<void>): Promise<void> {
    if (!this.#due.delete(name)) return;
    try {
      await work();
    } catch (error) {
      this.#due.add(name);
      throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }
}

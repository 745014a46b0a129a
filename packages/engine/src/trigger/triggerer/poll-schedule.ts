/** What there is a reason to look at: now, or at an appointed time. */
export class PollSchedule<Name extends string> {
  readonly #all: readonly Name[];
  readonly #due: Set<Name>;
  readonly #timers = new Map<Name, NodeJS.Timeout>();
  readonly #wake: () => void;
  #isClosed = false;

  /** Begins with a reason to look at everything. */
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

  /** As `add`, and somebody looks soon. */
  now(...names: readonly Name[]): void {
    this.add(...names);
    this.#wake();
  }

  /** Replaces an earlier appointment: whoever makes one has just looked. */
  later(name: Name, ms: number): void {
    clearTimeout(this.#timers.get(name));
    if (this.#isClosed) return;
    this.#timers.set(
      name,
      setTimeout(() => this.now(name), Math.min(Math.max(ms, 0), 2 ** 30)),
    );
  }

  /** Does it if there is a reason to; a failure leaves the reason where it was. */
  async take(name: Name, work: () => Promise<void>): Promise<void> {
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

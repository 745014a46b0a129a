/**
 * The slots of a worker, shared by its queues. Each queue may receive as many messages as it has assignments running, and as
 * there are free slots: so a busy queue takes all, and an idle one takes the next free slot. A message that arrives when the
 * last slot was just taken waits for the next one.
 */
export class SharedSlots {
  readonly #running: number[];
  readonly #waiting: { readonly queue: number; readonly start: () => void }[] = [];
  readonly #onLimit: (queue: number, limit: number) => void;
  #free: number;

  /** @param onLimit How many messages a queue may have in hand, at least 1. */
  constructor(slots: number, queues: number, onLimit: (queue: number, limit: number) => void) {
    this.#free = slots;
    this.#running = Array.from({ length: queues }, () => 0);
    this.#onLimit = onLimit;
  }

  async acquire(queue: number): Promise<void> {
    if (this.#free === 0) {
      await new Promise<void>((start) => this.#waiting.push({ queue, start }));
      return;
    }
    this.#take(queue);
  }

  release(queue: number): void {
    this.#running[queue] = (this.#running[queue] ?? 1) - 1;
    this.#free++;
    const next = this.#waiting.shift();
    if (next === undefined) this.#limit();
    else {
      this.#take(next.queue);
      next.start();
    }
  }

  #take(queue: number): void {
    this.#free--;
    this.#running[queue] = (this.#running[queue] ?? 0) + 1;
    this.#limit();
  }

  #limit(): void {
    // With one queue, its limit never changes.
    if (this.#running.length === 1) return;
    for (const [queue, running] of this.#running.entries())
      this.#onLimit(queue, Math.max(1, running + this.#free));
  }
}

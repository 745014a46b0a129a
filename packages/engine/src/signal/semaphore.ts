/**
 * Limits concurrent commits. A hundred listeners that each commit at every signal would spend the machine on commits;
 * while a listener waits for its turn its signals accumulate, and it processes more of them at once. A turn is granted
 * after `patienceMs` at the latest: a slow watcher delays only itself.
 */
export class Semaphore {
  readonly #free: number;
  readonly #patienceMs: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(places: number, patienceMs: number) {
    this.#free = places;
    this.#patienceMs = patienceMs;
  }

  /** Resolves when the turn is granted; call the returned function when done. */
  async acquire(): Promise<() => void> {
    if (this.#taken >= this.#free) {
      await new Promise<void>((resolve) => {
        const go = () => {
          clearTimeout(timer);
          this.#waiting.delete(go);
          resolve();
        };
        const timer = setTimeout(go, this.#patienceMs);
        this.#waiting.add(go);
      });
    }
    this.#taken++;
    return () => {
      this.#taken--;
      // FIFO: a set keeps the order of its entries.
      if (this.#taken < this.#free) for (const go of this.#waiting) return go();
    };
  }
}

/**
 * Whose turn it is to store: a few at a time. A hundred listeners that each commit whenever a signal comes would spend
 * the machine on commits; while one waits for its turn its signals gather, and it deals with more of them at once.
 * Nobody waits longer than `patienceMs`: a watcher that takes its time holds up nobody but itself.
 */
export class Turns {
  readonly #places: number;
  readonly #patienceMs: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(places: number, patienceMs: number) {
    this.#places = places;
    this.#patienceMs = patienceMs;
  }

  /** Resolves when it is one's turn; call what it gives when done. */
  async take(): Promise<() => void> {
    if (this.#taken >= this.#places) {
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
      // Those who wait the longest come first: a set keeps the order of its entries.
      if (this.#taken < this.#places) for (const go of this.#waiting) return go();
    };
  }
}

/**
 * Where everything that concerns a job's runs arrives, in order. What gathers while a transaction is in flight is
 * taken as one batch: an idle job answers at once, a loaded one pays one commit for many events.
 *
 * Some news can wait a little for company ("this attempt started"): posted with `patience`, it wakes the reader only
 * after that long, and rides along with whatever wakes it before.
 */
export class Mailbox<T> {
  #items: T[] = [];
  #wake: (() => void) | null = null;
  #urgent = false;
  #timer: NodeJS.Timeout | null = null;

  post(item: T): void {
    this.#items.push(item);
    this.wake();
  }

  postPatiently(item: T, patienceMs: number): void {
    this.#items.push(item);
    if (this.#urgent || this.#timer) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.wake();
    }, patienceMs);
  }

  /** Ends the reader's wait even if nothing was posted. */
  wake(): void {
    this.#urgent = true;
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }

  /** Resolves when there is something urgent; at once if there already is. */
  async wait(): Promise<void> {
    if (this.#urgent) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  take(): T[] {
    const items = this.#items;
    this.#items = [];
    this.#urgent = false;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    return items;
  }

  get size(): number {
    return this.#items.length;
  }
}

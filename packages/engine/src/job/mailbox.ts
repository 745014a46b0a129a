/**
 * Where everything that concerns a job's runs arrives, in order. What gathers while a transaction is in flight is
 * taken as one batch: an idle job answers at once, a loaded one pays one commit for many events.
 *
 * Some news can wait a little for company ("this attempt started"). It is kept back that long even if the reader is
 * woken for something else: when the attempt ends first, as short ones do, both are one change to store, not two.
 */
export class Mailbox<T> {
  #items: T[] = [];
  /** News that may wait, by what it is about; oldest first, because all wait equally long. */
  readonly #patient = new Map<string, { readonly item: T; readonly until: number }>();
  readonly #patienceMs: number;
  #wake: (() => void) | null = null;
  #urgent = false;
  #called = false;
  #timer: NodeJS.Timeout | null = null;

  /** @param patienceMs How long the start of an attempt waits to be stored together with its end. */
  constructor(patienceMs = 20) {
    this.#patienceMs = patienceMs;
  }

  /** @param about What was kept back about the same goes before it. */
  post(item: T, about: string): void {
    const kept = this.#patient.get(about);
    if (kept) {
      this.#patient.delete(about);
      this.#items.push(kept.item);
    }
    this.#items.push(item);
    this.#hurry();
  }

  postPatiently(item: T, about: string): void {
    this.#patient.set(about, { item, until: performance.now() + this.#patienceMs });
    this.#arm();
  }

  /** Ends the reader's wait even if nothing was posted; while the reader is at work, its next wait. */
  wake(): void {
    this.#called = true;
    this.#release();
  }

  /** Resolves when there is something urgent; at once if there already is. */
  async wait(): Promise<void> {
    if (!this.#urgent && !this.#called)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    // Not in `take`: a call that comes before it may be about something the reader has already looked past.
    this.#called = false;
  }

  /** @param limit How many at most; the rest is as urgent as before. */
  take(limit = Number.POSITIVE_INFINITY): T[] {
    const items = this.#items.splice(0, limit);
    this.#urgent = this.#items.length > 0;
    if (this.#urgent) return items;
    const now = performance.now();
    for (const [about, { item, until }] of this.#patient) {
      if (until > now) break;
      this.#patient.delete(about);
      items.push(item);
    }
    this.#arm();
    return items;
  }

  /** What is to be taken next, without what is kept back. */
  get items(): readonly T[] {
    return this.#items;
  }

  get size(): number {
    return this.#items.length + this.#patient.size;
  }

  /** One timer for all: most of what it was set for has left with something urgent by the time it fires. */
  #arm(): void {
    const [first] = this.#patient.values();
    if (this.#timer || !first) return;
    const fire = () => {
      this.#timer = null;
      const [next] = this.#patient.values();
      // Set again by `take` when something is due, so that a reader who is held up is not called over and over.
      if (next && next.until <= performance.now()) this.#hurry();
      else this.#arm();
    };
    this.#timer = setTimeout(fire, Math.max(1, first.until - performance.now()));
  }

  #hurry(): void {
    this.#urgent = true;
    this.#release();
  }

  #release(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}

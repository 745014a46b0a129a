/**
 * The queue of all events that concern a job's runs, in order. Events that arrive during a transaction are taken as one
 * batch: an idle job reacts at once, a loaded job pays one commit for many events.
 *
 * Some events can be deferred briefly ("this attempt started"). They are withheld for that time even if the reader is
 * woken for something else: if the attempt ends first, as short ones do, both are stored as one change.
 */
export class Mailbox<T> {
  #items: T[] = [];
  /** Deferred events by key; oldest first, because all have the same delay. */
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

  /** @param about A deferred event with the same key is delivered before it. */
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

  /** Ends the reader's wait even if nothing was posted; while the reader is busy, its next wait. */
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
    // Not in `take`: a wake-up before it may be about something that the reader has already passed.
    this.#called = false;
  }

  /** @param limit Maximum number; the rest stays urgent. */
  drain(limit = Number.POSITIVE_INFINITY): T[] {
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

  /** The next events, without deferred ones. */
  get items(): readonly T[] {
    return this.#items;
  }

  get size(): number {
    return this.#items.length + this.#patient.size;
  }

  /** One timer for all: most deferred events have left with an urgent one by the time it fires. */
  #arm(): void {
    const [first] = this.#patient.values();
    if (this.#timer || !first) return;
    const fire = () => {
      this.#timer = null;
      const [next] = this.#patient.values();
      // `take` sets it again when something is due, so that a busy reader is not woken repeatedly.
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

/** What time it is in a run, and how it passes. */

/** Longer waits overflow the timer, and clocks are set meanwhile. */
const LONGEST_TIMER_MS = 3_600_000;

/** What a run may hear of before its next moment. */
export interface News {
  /** Something is under way that will report. */
  readonly isBusy: boolean;
  /** Resolves when there is something to hear. */
  arrival(): Promise<void>;
}

export interface Clock {
  /** Whether its time is not that of the world. */
  readonly isVirtual: boolean;
  /** Milliseconds. */
  now(): number;
  /** Lets time pass until the next moment of the run (Infinity: it has none), or until there is news. */
  pass(nextMoment: () => number, news: News): Promise<void>;
}

/** Stands still while something is under way, and jumps to the next moment when nothing is. */
export class VirtualClock implements Clock {
  readonly isVirtual = true;
  #now: number;

  constructor(start: number) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  async pass(nextMoment: () => number, news: News): Promise<void> {
    if (news.isBusy) await news.arrival();
    else this.#now = Math.max(this.#now, nextMoment());
  }
}

/** Goes as fast as the world's, from a start of its own. */
export class RealClock implements Clock {
  readonly isVirtual = false;
  readonly #aheadMs: number;

  constructor(start: number) {
    this.#aheadMs = start - Date.now();
  }

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  async pass(nextMoment: () => number, news: News): Promise<void> {
    const moment = nextMoment();
    // Without a timer: a task that waits for nothing must not be kept alive by it.
    if (moment === Number.POSITIVE_INFINITY) return await news.arrival();
    const leftMs = Math.min(Math.max(0, moment - this.now()), LONGEST_TIMER_MS);
    let timer: NodeJS.Timeout | undefined;
    const due = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, leftMs);
    });
    await Promise.race([due, news.arrival()]);
    clearTimeout(timer);
  }
}

/** The clock of a run. */

/** Longer waits overflow the timer, and the system clock may change. */
const LONGEST_TIMER_MS = 3_600_000;

/** Events that a run may receive before its next moment. */
export interface News {
  /** Work is running that will report. */
  readonly isBusy: boolean;
  /** Resolves when there is an event. */
  arrival(): Promise<void>;
}

export interface Clock {
  /** Whether its time is independent of real time. */
  readonly isVirtual: boolean;
  /** Milliseconds. */
  now(): number;
  /** Advances until the next moment of the run (Infinity: there is none), or until there is an event. */
  pass(nextMoment: () => number, news: News): Promise<void>;
}

/** Stands still while work is running, and jumps to the next moment otherwise. */
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

/** Runs in real time, from a start of its own. */
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
    // Without a timer, which would keep the process alive for a task that waits for nothing.
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

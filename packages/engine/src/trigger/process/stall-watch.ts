/**
 * One stall of the child's loop at a time, from the first sample to its end: which code was found, and whether it was
 * always the same. Many triggers that are due in the same turn can hold the loop for a while without any of them being
 * guilty: then each sample finds another one.
 */
import type { Culprit, StallReport } from "./runner-protocol.ts";

export interface Stall {
  /** The culprit that most samples have found, up to the last; null: none, or different ones. */
  readonly who: Culprit;
  /** As `who`, if two consecutive samples have found it: a single sample may catch code that has only just started. */
  readonly blocker: Culprit;
  readonly ms: number;
  /** The stack of the first sample that found it: a later sample may see the code after the blocking call. */
  readonly stack: string;
  readonly checks: number;
  /** How many of the last samples found the same culprit. */
  readonly streak: number;
}

const NOTHING_SEEN: Stall = { who: null, blocker: null, ms: 0, stack: "", checks: 0, streak: 0 };

export class StallWatch {
  readonly #limitMs: number;
  readonly #tooLong: () => void;
  #stall: Stall | null = null;
  #lastWho: Culprit = null;
  #limit: NodeJS.Timeout | null = null;

  /** @param tooLong Called once per stall, when it has lasted for the limit. */
  constructor(limitMs: number, tooLong: () => void) {
    this.#limitMs = limitMs;
    this.#tooLong = tooLong;
  }

  /** The stall in progress. */
  get current(): Stall | null {
    return this.#stall;
  }

  /** Returns the stall that ends with this report. */
  record(report: StallReport): Stall | null {
    if (report.k === "over") {
      const stall = this.#stall ?? NOTHING_SEEN;
      this.end();
      return { ...stall, ms: report.ms };
    }
    const { who, ms } = report;
    if (this.#stall === null) this.#limit = setTimeout(this.#tooLong, Math.max(0, this.#limitMs - ms));
    const checks = (this.#stall?.checks ?? 0) + 1;
    const streak = who === this.#lastWho ? (this.#stall?.streak ?? 0) + 1 : 1;
    const stack = streak === 1 ? report.stack : (this.#stall?.stack ?? report.stack);
    this.#lastWho = who;
    const most = streak * 2 > checks ? who : null;
    this.#stall = { who: most, blocker: streak >= 2 ? most : null, ms, stack, checks: checks, streak };
    return null;
  }

  end(): void {
    if (this.#limit !== null) clearTimeout(this.#limit);
    this.#limit = null;
    this.#stall = null;
    this.#lastWho = null;
  }
}

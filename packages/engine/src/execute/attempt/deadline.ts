/**
 * A timer that can be moved to an earlier moment and cleared, but not postponed. It may be longer than setTimeout allows.
 */

/** A longer delay would wrap around in setTimeout and fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Deadline {
  /** By performance.now(). Kept after the timer has fired, so that it does not fire again before it is cleared. */
  #at = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  /** Ignored if the timer is due earlier, or has fired. */
  within(ms: number, act: () => void): void {
    const at = performance.now() + ms;
    if (at >= this.#at) return;
    this.#at = at;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#arm(ms, act);
  }

  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#at = Number.POSITIVE_INFINITY;
  }

  #arm(leftMs: number, act: () => void): void {
    const delay = Math.min(leftMs, MAX_TIMER_MS);
    this.#timer = setTimeout(() => (leftMs > delay ? this.#arm(leftMs - delay, act) : act()), delay);
  }
}

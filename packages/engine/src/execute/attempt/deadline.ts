/**
 * When something is done at the latest. Can be brought forward and called off, but never put off; may be further away
 * than a timer can hold.
 */

/** A longer delay would wrap around in setTimeout and fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Deadline {
  /** By performance.now(). Stays when it has passed, so that nothing happens twice before it is cleared. */
  #at = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;

  /** Nothing happens if something is due, or was done, before that. */
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

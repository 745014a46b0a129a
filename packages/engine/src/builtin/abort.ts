/** Waits that end on an abort signal: a stopped trigger must not linger in one. */

/** Settles with `work`, or rejects at once when the signal fires; a later result of `work` is dropped. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const give = () => reject(signal.reason);
    if (signal.aborted) give();
    else signal.addEventListener("abort", give, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", give));
  });
}

/** Passes `work` a signal that fires with `outer` or after `ms`, and ends with that signal even if `work` ignores it. */
export async function withDeadline<T>(
  outer: AbortSignal,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  outer.throwIfAborted();
  const controller = new AbortController();
  const stop = () => controller.abort(outer.reason);
  outer.addEventListener("abort", stop, { once: true });
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${ms / 1000} s`)), ms);
  try {
    return await untilAborted(work(controller.signal), controller.signal);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", stop);
  }
}

/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A pause that can be cut short. A hurry outside of a pause applies to the next one. */
export class Pause {
  #hurried = false;
  #end: (() => void) | null = null;

  hurry(): void {
    this.#hurried = true;
    this.#end?.();
  }

  /** Resolves after `ms`, on a hurry, or at the abort. */
  async for(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#hurried && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => this.#end?.(), Math.min(ms, LONGEST_TIMER_MS));
        this.#end = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", this.#end as () => void);
          this.#end = null;
          resolve();
        };
        signal.addEventListener("abort", this.#end, { once: true });
      });
    }
    this.#hurried = false;
  }
}

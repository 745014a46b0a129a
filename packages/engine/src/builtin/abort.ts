/** Waits that end when they are told to: a trigger that is stopped must not linger in one. */

/** Settles with `work`, or rejects at once when the signal fires; what `work` comes to afterwards is dropped. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const give = () => reject(signal.reason);
    if (signal.aborted) give();
    else signal.addEventListener("abort", give, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", give));
  });
}

/** Gives `work` a signal that fires with `outer` or after `ms`, and ends with that signal whether `work` heeds it or not. */
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

/** A pause that can be cut short. A hurry that comes while nobody pauses is kept for the next pause. */
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

/** A timer that one caller awaits and others can end early. */
export class WakeableSleep {
  #end: (() => void) | null = null;

  /** Resolves after `ms`, at the next `wake`, or when `abort` fires. */
  async sleep(ms: number, abort?: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const end = () => resolve();
    this.#end = end;
    const timer = setTimeout(end, ms);
    abort?.addEventListener("abort", end, { once: true });
    await promise;
    this.#end = null;
    clearTimeout(timer);
    abort?.removeEventListener("abort", end);
  }

  /** No effect unless a caller sleeps: callers check their condition before they sleep. */
  wake(): void {
    this.#end?.();
  }
}

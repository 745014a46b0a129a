/** Wakes the follower of a try's log when a file in its folder was written, or is new. */
import { type FSWatcher, watch } from "node:fs";

export class LogGrowth {
  readonly #folder: string | null;
  #watcher: FSWatcher | null = null;
  #count = 0;
  #wake: () => void = () => {};

  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** Taken before reading: what is written after it ends the next wait at once. */
  mark(): number {
    this.#open();
    return this.#count;
  }

  /** Waits for growth since the mark. `ms` limits it: folders are not yet there, and some file systems tell nothing. */
  async after(mark: number, { ms, stop }: { ms: number; stop: AbortSignal }): Promise<void> {
    if (this.#count !== mark || stop.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const timer = setTimeout(wake, ms);
    this.#wake = wake;
    stop.addEventListener("abort", wake);
    await promise;
    clearTimeout(timer);
    stop.removeEventListener("abort", wake);
    this.#wake = () => {};
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }

  #open(): void {
    if (this.#watcher !== null || this.#folder === null) return;
    try {
      const watcher = watch(this.#folder, { persistent: false }, () => {
        this.#count++;
        this.#wake();
      });
      watcher.on("error", () => this.close());
      this.#watcher = watcher;
    } catch {
      // Not there yet, or no watches left: the timer looks again.
    }
  }
}

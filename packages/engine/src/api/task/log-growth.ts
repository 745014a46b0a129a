/** Wakes the follower of a log when a file in its folder is written or created. */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

export class LogGrowth {
  readonly #folder: string | null;
  #watcher: FSWatcher | null = null;
  /** The folder, or its nearest existing parent. */
  #watched: string | null = null;
  #count = 0;
  #wake: () => void = () => {};

  constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** Taken before reading: later writes end the next wait at once. */
  mark(): number {
    this.#open();
    return this.#count;
  }

  /** Waits for growth since the mark, at most `ms`: some file systems report no changes. */
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
    this.#watched = null;
  }

  /** Retries until the folder exists: a parent may be created before it is watched. */
  #open(): void {
    if (this.#folder === null) return;
    for (let next = nearest(this.#folder); next !== this.#watched; next = nearest(this.#folder)) {
      this.close();
      if (next === null || !this.#watch(next)) return;
    }
  }

  #watch(folder: string): boolean {
    try {
      const watcher = watch(folder, { persistent: false }, () => {
        this.#count++;
        this.#wake();
      });
      watcher.on("error", () => this.close());
      this.#watcher = watcher;
      this.#watched = folder;
      return true;
    } catch {
      // Deleted again, or no watches left: the timer retries.
      return false;
    }
  }
}

function nearest(folder: string): string | null {
  if (existsSync(folder)) return folder;
  const above = dirname(folder);
  return above === folder ? null : nearest(above);
}

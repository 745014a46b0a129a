/**
 * Reports changes in a set of folders, debounced. One plain watch per folder: a recursive one would also watch every
 * node_modules below. It is only a wake-up: the processor's slow rescan finds a missed event.
 */
import { type FSWatcher, watch } from "node:fs";
import { join } from "node:path";

export interface FolderWatchOptions {
  readonly debounceMs: number;
  readonly onChange: (paths: ReadonlySet<string>) => void;
  readonly onError: (folder: string, error: unknown) => void;
}

export class FolderWatch {
  readonly #options: FolderWatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  #changed = new Set<string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: FolderWatchOptions) {
    this.#options = options;
  }

  /** Watches exactly these folders from now on. True if some are new, and may have changed before they were watched. */
  watch(folders: Iterable<string>): boolean {
    const wanted = new Set(folders);
    let grew = false;
    for (const folder of this.#watchers.keys()) if (!wanted.has(folder)) this.#drop(folder);
    for (const folder of wanted) {
      if (this.#watchers.has(folder)) continue;
      try {
        const watcher = watch(folder, { persistent: false }, (_, name) => {
          this.#recordChange(name === null ? folder : join(folder, name));
        });
        watcher.on("error", () => this.#drop(folder)); // removed or unmounted
        this.#watchers.set(folder, watcher);
        grew = true;
      } catch (error) {
        this.#options.onError(folder, error);
      }
    }
    return grew;
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    for (const folder of [...this.#watchers.keys()]) this.#drop(folder);
  }

  #recordChange(path: string): void {
    this.#changed.add(path);
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      const changed = this.#changed;
      this.#changed = new Set();
      this.#options.onChange(changed);
    }, this.#options.debounceMs);
  }

  #drop(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }
}

/** Calls when a file in a folder is written or created. The folder may not exist yet: then its nearest parent is watched. */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

export class FolderWatch {
  readonly #folder: string;
  readonly #onChange: () => void;
  #watcher: FSWatcher | null = null;
  /** The folder, or its nearest existing parent. */
  #watched: string | null = null;

  constructor(folder: string, onChange: () => void) {
    this.#folder = folder;
    this.#onChange = onChange;
  }

  /** Called before each read, so that a later change is noticed. Retries: a parent may be created before it is watched. */
  open(): void {
    for (let next = nearest(this.#folder); next !== this.#watched; next = nearest(this.#folder)) {
      this.close();
      if (next === null || !this.#watch(next)) return;
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
    this.#watched = null;
  }

  #watch(folder: string): boolean {
    try {
      const watcher = watch(folder, { persistent: false }, this.#onChange);
      watcher.on("error", () => this.close());
      this.#watcher = watcher;
      this.#watched = folder;
      return true;
    } catch {
      // Deleted again, or no watches left: the caller reads from time to time.
      return false;
    }
  }
}

function nearest(folder: string): string | null {
  if (existsSync(folder)) return folder;
  const above = dirname(folder);
  return above === folder ? null : nearest(above);
}

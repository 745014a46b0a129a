/**
 * The log files of one run: `<task>/<map index>/<try>-….log`, and the files in `callbacks/` and `signals/` of the run's own
 * code. A folder is read again only after a change. While the run is followed, each folder is watched before it is read, so that
 * no new file is missed. Some file systems report no changes, so the caller rescans everything from time to time.
 */
import { type Dirent, type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { LogGrowth } from "../task/log-growth.ts";

/** The source of a line. */
export interface LogSource {
  /** null: a callback or `onSignal`. */
  readonly taskId: string | null;
  readonly mapIndex: number;
  readonly tryNumber: number | null;
  /** The path of the file below the folder of the run, without its extension. */
  readonly name: string;
}

export interface FoundLog {
  readonly path: string;
  readonly size: number;
  readonly source: LogSource;
}

interface TreeOptions {
  /** undefined: all tasks. */
  readonly taskIds?: readonly string[] | undefined;
  readonly withCallbacks: boolean;
  readonly isFollowed: boolean;
}

const OWN_FOLDERS: ReadonlySet<string> = new Set(["callbacks", "signals"]);
const END = ".log";

export class RunLogTree {
  readonly #options: TreeOptions;
  /** null: an id such as ".." leads outside. */
  readonly #root: string | null;
  /** Names below the folder of the run, by path. */
  readonly #folders = new Map<string, readonly string[]>();
  readonly #changed = new Set<string>();
  /** Watches the folder of the run, which may not exist yet. */
  readonly #growth: LogGrowth;
  readonly #watchers = new Map<string, FSWatcher>();
  #mark = 0;
  #isWoken = false;
  #wake: () => void = () => {};

  constructor(logsDir: string, run: { readonly dag_id: string; readonly id: number }, options: TreeOptions) {
    const logs = resolve(logsDir);
    const root = resolve(join(logs, run.dag_id, String(run.id)));
    this.#options = options;
    this.#root = root.startsWith(`${logs}${sep}`) ? root : null;
    this.#growth = new LogGrowth(this.#root);
    if (this.#root !== null) this.#folders.set(this.#root, []);
  }

  /** The files of folders that changed since the last call, or of all folders. */
  async *changed({ isAll }: { readonly isAll: boolean }): AsyncGenerator<FoundLog, void, undefined> {
    const mark = this.#options.isFollowed ? this.#growth.mark() : 0;
    if (mark !== this.#mark && this.#root !== null) this.#changed.add(this.#root);
    this.#mark = mark;
    const queue = [...(isAll ? this.#folders.keys() : this.#changed)];
    // Later changes belong to the next call: a file that keeps growing must not prevent this one from ending.
    this.#changed.clear();
    for (const path of queue) {
      const names = this.#folders.get(path)!;
      this.#watch(path, names);
      const entries: Dirent[] = await readdir(path, { withFileTypes: true }).catch(() => []);
      for (const entry of entries) {
        const below = join(path, entry.name);
        if (!entry.isDirectory() || this.#folders.has(below)) continue;
        if (!this.#hasFolder([...names, entry.name])) continue;
        this.#folders.set(below, [...names, entry.name]);
        queue.push(below);
      }
      // isFile() is false for a symbolic link, whose target may be outside of the logs.
      const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(END));
      yield* (await Promise.all(files.map(({ name }) => this.#find(path, [...names, name])))).flat();
    }
  }

  /** Waits for a change since the last call of `changed`, at most this long. */
  async wait({ ms, stop }: { readonly ms: number; readonly stop: AbortSignal }): Promise<void> {
    if (this.#changed.size === 0 && !this.#isWoken) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await this.#growth.after(this.#mark, { ms, stop: AbortSignal.any([stop, woken.signal]) });
      this.#wake = () => {};
    }
    this.#isWoken = false;
  }

  /** Ends the current wait, or the next one. */
  wake(): void {
    this.#isWoken = true;
    this.#wake();
  }

  close(): void {
    this.#growth.close();
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #hasFolder([top = "", ...rest]: readonly string[]): boolean {
    const { taskIds } = this.#options;
    if (rest.length > 0) return rest.length === 1 && /^-?\d+$/.test(rest[0]!);
    // A task may have the name of one of the run's own folders; its logs are then in subfolders.
    return taskIds === undefined || taskIds.includes(top) || OWN_FOLDERS.has(top);
  }

  async #find(folder: string, names: readonly string[]): Promise<FoundLog[]> {
    const [top = "", index, file] = names;
    const { taskIds, withCallbacks } = this.#options;
    const name = names.join("/").slice(0, -END.length);
    const path = join(folder, names.at(-1)!);
    const found = async (source: LogSource) => {
      const size = await stat(path).then(
        (stats) => stats.size,
        () => 0,
      );
      return size === 0 ? [] : [{ path, size, source }];
    };
    if (names.length === 2 && OWN_FOLDERS.has(top) && withCallbacks)
      return found({ taskId: null, mapIndex: -1, tryNumber: null, name });
    const tryNumber = Number.parseInt(file ?? "", 10);
    if (names.length !== 3 || Number.isNaN(tryNumber) || taskIds?.includes(top) === false) return [];
    return found({ taskId: top, mapIndex: Number(index), tryNumber, name });
  }

  /** `#growth` watches the folder of the run itself. */
  #watch(path: string, names: readonly string[]): void {
    if (!this.#options.isFollowed || names.length === 0 || this.#watchers.has(path)) return;
    try {
      const watcher = watch(path, { persistent: false }, () => {
        this.#changed.add(path);
        this.#wake();
      });
      watcher.on("error", () => {
        watcher.close();
        this.#watchers.delete(path);
      });
      this.#watchers.set(path, watcher);
    } catch {
      // No watches left, or the folder was deleted: the caller rescans it from time to time.
    }
  }
}

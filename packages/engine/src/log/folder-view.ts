/**
 * The log files below some folders. A folder is read again only after a change. While it is followed, each folder is watched
 * before it is read, so that no new file is missed. Some file systems report no changes, such as those of other machines: the
 * caller reads everything from time to time.
 */
import { type Dirent, promises as fs } from "node:fs";
import { join } from "node:path";
import { WakeableSleep } from "../service/wakeable-sleep.ts";
import { FolderWatch } from "./folder-watch.ts";
import type { LogView, StoredLog } from "./log-store.ts";

interface Folder {
  readonly key: string;
  readonly path: string;
}

export class FolderView implements LogView {
  readonly #isFollowed: boolean;
  /** By path. */
  readonly #folders = new Map<string, Folder>();
  readonly #watches = new Map<string, FolderWatch>();
  readonly #changed = new Set<Folder>();
  readonly #sleep = new WakeableSleep();
  #isWoken = false;

  constructor(folders: readonly Folder[], isFollowed: boolean) {
    this.#isFollowed = isFollowed;
    for (const folder of folders) this.#add(folder);
  }

  async *changed({ isAll }: { readonly isAll: boolean }): AsyncGenerator<StoredLog, void, undefined> {
    const queue = [...(isAll ? this.#folders.values() : this.#changed)];
    // Later changes belong to the next call: a file that keeps growing must not prevent this one from ending.
    this.#changed.clear();
    for (const folder of queue) {
      this.#watches.get(folder.path)?.open();
      const entries: Dirent[] = await fs.readdir(folder.path, { withFileTypes: true }).catch(() => []);
      for (const { name } of entries.filter((entry) => entry.isDirectory())) {
        const below = this.#add(within(folder, name));
        if (below !== null) queue.push(below);
      }
      // isFile() is false for a symbolic link, whose target may be outside of the logs.
      const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(".log"));
      yield* (await Promise.all(files.map(({ name }) => findLog(within(folder, name))))).flat();
    }
  }

  async wait({ ms, stop }: { readonly ms: number; readonly stop: AbortSignal }): Promise<void> {
    if (this.#changed.size === 0 && !this.#isWoken && !stop.aborted) await this.#sleep.sleep(ms, stop);
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#sleep.wake();
  }

  close(): void {
    for (const watch of this.#watches.values()) watch.close();
  }

  /** null: known. */
  #add(folder: Folder): Folder | null {
    if (this.#folders.has(folder.path)) return null;
    this.#folders.set(folder.path, folder);
    if (this.#isFollowed) {
      const onChange = () => {
        this.#changed.add(folder);
        this.#sleep.wake();
      };
      this.#watches.set(folder.path, new FolderWatch(folder.path, onChange));
    }
    return folder;
  }
}

class FileLog implements StoredLog {
  readonly key: string;
  readonly size: number;
  readonly modifiedAt: number;
  readonly #path: string;

  constructor({ key, path }: Folder, { mtimeMs, size }: { readonly mtimeMs: number; readonly size: number }) {
    this.key = key;
    this.size = size;
    this.modifiedAt = mtimeMs;
    this.#path = path;
  }

  async read(from: number, to: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(to - from);
    const handle = await fs.open(this.#path, "r").catch(ignoreMissing);
    if (handle === null) return bytes.subarray(0, 0);
    try {
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, from);
      return bytes.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }
}

async function findLog(file: Folder): Promise<FileLog[]> {
  const stats = await fs.stat(file.path).catch(() => null);
  return stats === null || stats.size === 0 ? [] : [new FileLog(file, stats)];
}

/** The time of a folder changes when files are created or deleted, that of a file when it is written. */
export async function lastWrittenIn(path: string): Promise<number> {
  const own = await fs.stat(path).catch(() => null);
  const inside = await Promise.all(
    (await entriesOf(path)).map(async (entry) => {
      const below = join(path, entry.name);
      if (entry.isDirectory()) return lastWrittenIn(below);
      return (await fs.lstat(below).catch(() => null))?.mtimeMs ?? 0;
    }),
  );
  return inside.reduce((latest, each) => Math.max(latest, each), own?.mtimeMs ?? 0);
}

function within({ key, path }: Folder, name: string): Folder {
  return { key: key === "" ? name : `${key}/${name}`, path: join(path, name) };
}

/** Empty if the folder does not exist (any more). */
async function entriesOf(path: string): Promise<Dirent[]> {
  return (await fs.readdir(path, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
  throw error;
}

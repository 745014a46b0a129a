/**
 * The log of one try, as one growing text with byte offsets. A try may have had several attempts: lost ones, and one
 * after each wait; their files, and those of the triggers they waited for, follow each other in the order of their
 * first lines. Paths are made from rows that exist, never from what a caller sent.
 */
import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { type LogLine, readLog } from "../execute/task-log.ts";
import type { TaskInstanceRow } from "../store/list/task-instances.ts";
import { LogGrowth } from "./log-growth.ts";

export interface TryLog {
  readonly lines: readonly LogLine[];
  readonly nextOffset: number;
  /** Nothing more was there at the time. */
  readonly end: boolean;
}

export class TryLogReader {
  readonly #folder: string | null;
  readonly #tryNumber: number;
  readonly #beginnings = new Map<string, string>();

  constructor(logsDir: string, row: TaskInstanceRow, tryNumber: number) {
    const root = resolve(logsDir);
    const folder = resolve(
      join(root, row.dag_id, String(row.dag_run_id), row.task_id, String(row.map_index)),
    );
    // An id such as ".." was stored by nobody we trust with paths.
    this.#folder = folder.startsWith(`${root}${sep}`) ? folder : null;
    this.#tryNumber = tryNumber;
  }

  /** To be closed by whoever asks for it. */
  growth(): LogGrowth {
    return new LogGrowth(this.#folder);
  }

  /** Whole lines from `offset` on, about `limit` bytes of them. */
  async read(offset: number, limit: number): Promise<TryLog> {
    const files = await this.#files();
    let base = 0;
    for (const [index, file] of files.entries()) {
      const last = index === files.length - 1;
      const local = offset - base;
      if (local < file.size || last) {
        const chunk = await readLog(file.path, { offset: Math.max(0, local), limit });
        if (chunk.lines.length > 0)
          return { lines: chunk.lines, nextOffset: base + chunk.nextOffset, end: chunk.end && last };
        if (last) return { lines: [], nextOffset: Math.max(offset, base + chunk.nextOffset), end: true };
      }
      base += file.size;
      offset = Math.max(offset, base);
    }
    return { lines: [], nextOffset: offset, end: true };
  }

  async #files(): Promise<{ path: string; size: number }[]> {
    if (this.#folder === null) return [];
    const folder = this.#folder;
    const entries: Dirent[] = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const prefix = `${this.#tryNumber}-`;
    // isFile() is false for a symbolic link: what it points to may not be ours to show.
    const names = entries.filter(
      (entry) => entry.isFile() && entry.name.startsWith(prefix) && entry.name.endsWith(".log"),
    );
    const files = await Promise.all(
      names.map(async (entry) => {
        const path = join(folder, entry.name);
        const { size, mtimeMs } = await stat(path);
        return { begun: names.length > 1 ? await this.#begun(path) : "", path, size, mtimeMs };
      }),
    );
    return files.sort((a, b) => (a.begun === b.begun ? a.mtimeMs - b.mtimeMs : a.begun < b.begun ? -1 : 1));
  }

  /** The time of its first line. A file that has none yet comes last. */
  async #begun(path: string): Promise<string> {
    const known = this.#beginnings.get(path);
    if (known !== undefined) return known;
    const first = (await readLog(path, { limit: 1 })).lines[0]?.t;
    if (first !== undefined) this.#beginnings.set(path, first);
    return first ?? "~";
  }
}

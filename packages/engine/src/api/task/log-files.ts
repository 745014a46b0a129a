/**
 * Related log files as one growing text with byte offsets, ordered by their first lines: the attempts of one try (lost ones, and
 * one after each wait) with the triggers they waited for; or the callbacks and `onSignal` calls of a run. Paths are built from
 * existing rows, never from request data.
 */
import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { type LogLine, readLog } from "../../log/task-log.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import { LogGrowth } from "./log-growth.ts";

interface LogPiece {
  readonly lines: readonly LogLine[];
  readonly nextOffset: number;
  /** The end of the log at the time of reading. */
  readonly end: boolean;
}

abstract class LogReader {
  readonly #folders: readonly string[];
  readonly #beginnings = new Map<string, string>();

  constructor(logsDir: string, folders: readonly (readonly string[])[]) {
    const root = resolve(logsDir);
    this.#folders = folders
      .map((names) => resolve(join(root, ...names)))
      // An id such as ".." is not trusted as a path.
      .filter((folder) => folder.startsWith(`${root}${sep}`));
  }

  protected abstract has(name: string): boolean;

  protected get folder(): string | null {
    return this.#folders[0] ?? null;
  }

  /** Complete lines from `offset` on, about `limit` bytes. */
  async read(offset: number, limit: number): Promise<LogPiece> {
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
    const paths = (await Promise.all(this.#folders.map((folder) => this.#paths(folder)))).flat();
    const files = await Promise.all(
      paths.map(async (path) => {
        const { size, mtimeMs } = await stat(path);
        return { begun: paths.length > 1 ? await this.#begun(path) : "", path, size, mtimeMs };
      }),
    );
    return files.sort((a, b) => (a.begun === b.begun ? a.mtimeMs - b.mtimeMs : a.begun < b.begun ? -1 : 1));
  }

  async #paths(folder: string): Promise<string[]> {
    const entries: Dirent[] = await readdir(folder, { withFileTypes: true }).catch(() => []);
    return (
      entries
        // isFile() is false for a symbolic link, whose target may be outside of the logs.
        .filter((entry) => entry.isFile() && entry.name.endsWith(".log") && this.has(entry.name))
        .map((entry) => join(folder, entry.name))
    );
  }

  /** The time of its first line. A file without lines comes last. */
  async #begun(path: string): Promise<string> {
    const known = this.#beginnings.get(path);
    if (known !== undefined) return known;
    const first = (await readLog(path, { limit: 1 })).lines[0]?.t;
    if (first !== undefined) this.#beginnings.set(path, first);
    return first ?? "~";
  }
}

export class TryLogReader extends LogReader {
  readonly #tryNumber: number;

  constructor(logsDir: string, row: TaskInstanceRow, tryNumber: number) {
    super(logsDir, [[row.dag_id, String(row.dag_run_id), row.task_id, String(row.map_index)]]);
    this.#tryNumber = tryNumber;
  }

  /** To be closed by the caller. */
  growth(): LogGrowth {
    return new LogGrowth(this.folder);
  }

  protected override has(name: string): boolean {
    return name.startsWith(`${this.#tryNumber}-`);
  }
}

export class RunLogReader extends LogReader {
  constructor(logsDir: string, { dag_id, id }: DagRunRow) {
    super(
      logsDir,
      ["callbacks", "signals"].map((kind) => [dag_id, String(id), kind]),
    );
  }

  protected override has(): boolean {
    return true;
  }
}

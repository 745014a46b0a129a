/**
 * Related logs as one growing text with byte offsets, ordered by their first lines: the attempts of one try (lost ones, and
 * one after each wait) with the triggers they waited for; or the callbacks and `onSignal` calls of a run. Keys are built from
 * existing rows, never from request data.
 */
import type { LogStore, LogView, StoredLog } from "../../log/log-store.ts";
import { type LogLine, readLines } from "../../log/task-log.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";

/** One of the joined logs. */
export interface LogPart {
  readonly log: StoredLog;
  /** Its position in the whole text. */
  readonly start: number;
  readonly isTrigger: boolean;
}

interface LogPiece {
  readonly lines: readonly LogLine[];
  readonly nextOffset: number;
  /** The end of the log at the time of reading. */
  readonly end: boolean;
}

/** Usually enough for the first line. */
const FIRST_BYTES = 4 * 1024;

abstract class LogReader {
  readonly #view: LogView;
  readonly #folders: ReadonlySet<string>;
  readonly #beginnings = new Map<string, string>();
  /** As last listed. */
  #logs: readonly StoredLog[] = [];

  constructor(logs: LogStore, folders: readonly string[], isFollowed = false) {
    this.#view = logs.view(folders, { isFollowed });
    this.#folders = new Set(folders);
  }

  protected abstract has(name: string): boolean;

  /** Complete lines from `offset` on, about `limit` bytes. */
  async read(offset: number, limit: number): Promise<LogPiece> {
    const known = await this.#read(offset, limit);
    if (!known.end) return known;
    this.#logs = await this.#list();
    return await this.#read(offset, limit);
  }

  /** The joined logs in their order, as they are now. */
  async parts(): Promise<readonly LogPart[]> {
    this.#logs = await this.#list();
    let start = 0;
    return this.#logs.map((log) => {
      const part = { log, start, isTrigger: log.key.endsWith(".trigger.log") };
      start += log.size;
      return part;
    });
  }

  /** Waits for growth since the last read, at most about `ms`. */
  wait(options: { readonly ms: number; readonly stop: AbortSignal }): Promise<void> {
    return this.#view.wait(options);
  }

  close(): void {
    this.#view.close();
  }

  async #read(offset: number, limit: number): Promise<LogPiece> {
    let base = 0;
    for (const [index, log] of this.#logs.entries()) {
      const last = index === this.#logs.length - 1;
      const local = offset - base;
      if (local < log.size || last) {
        const chunk = await readLines(log, { offset: Math.max(0, local), limit });
        if (chunk.lines.length > 0)
          return { lines: chunk.lines, nextOffset: base + chunk.nextOffset, end: chunk.end && last };
        if (last) return { lines: [], nextOffset: Math.max(offset, base + chunk.nextOffset), end: true };
      }
      base += log.size;
      offset = Math.max(offset, base);
    }
    return { lines: [], nextOffset: offset, end: true };
  }

  async #list(): Promise<StoredLog[]> {
    const found = await Array.fromAsync(this.#view.changed({ isAll: true }));
    const logs = found.filter(({ key }) => {
      const name = key.lastIndexOf("/") + 1;
      return this.#folders.has(key.slice(0, name - 1)) && this.has(key.slice(name));
    });
    const dated = await Promise.all(
      logs.map(async (log) => ({ log, begun: logs.length > 1 ? await this.#begun(log) : "" })),
    );
    return dated
      .sort((a, b) =>
        a.begun === b.begun ? a.log.modifiedAt - b.log.modifiedAt : a.begun < b.begun ? -1 : 1,
      )
      .map(({ log }) => log);
  }

  /** The time of its first line. A log without lines comes last. */
  async #begun(log: StoredLog): Promise<string> {
    const known = this.#beginnings.get(log.key);
    if (known !== undefined) return known;
    const first = (await readLines(log, { limit: FIRST_BYTES })).lines[0]?.t;
    if (first !== undefined) this.#beginnings.set(log.key, first);
    return first ?? "~";
  }
}

export class TryLogReader extends LogReader {
  readonly #tryNumber: number;

  /** To be closed by the caller if it is followed. */
  constructor(logs: LogStore, row: TaskInstanceRow, tryNumber: number, isFollowed = false) {
    super(logs, [`${row.dag_id}/${row.dag_run_id}/${row.task_id}/${row.map_index}`], isFollowed);
    this.#tryNumber = tryNumber;
  }

  protected override has(name: string): boolean {
    return name.startsWith(`${this.#tryNumber}-`);
  }
}

export class RunLogReader extends LogReader {
  constructor(logs: LogStore, { dag_id, id }: DagRunRow) {
    super(
      logs,
      ["callbacks", "signals"].map((kind) => `${dag_id}/${id}/${kind}`),
    );
  }

  protected override has(): boolean {
    return true;
  }
}

/**
 * The logs of one run: `<task>/<map index>/<try>-….log`, and those in `callbacks/` and `signals/` of the run's own code.
 */
import type { LogStore, LogView, StoredLog } from "../../log/log-store.ts";

/** The source of a line. */
export interface LogSource {
  /** null: a callback or `onSignal`. */
  readonly taskId: string | null;
  readonly mapIndex: number;
  readonly tryNumber: number | null;
  /** The path of the log below the folder of the run, without its extension. */
  readonly name: string;
}

export interface FoundLog {
  readonly log: StoredLog;
  readonly source: LogSource;
}

interface TreeOptions {
  /** undefined: all tasks. */
  readonly taskIds?: readonly string[] | undefined;
  readonly withCallbacks: boolean;
  readonly isFollowed: boolean;
}

const OWN_FOLDERS: readonly string[] = ["callbacks", "signals"];
const END = ".log";

export class RunLogTree {
  readonly #options: TreeOptions;
  /** The folder of the run. */
  readonly #root: string;
  readonly #view: LogView;

  constructor(logs: LogStore, run: { readonly dag_id: string; readonly id: number }, options: TreeOptions) {
    const { isFollowed, taskIds, withCallbacks } = options;
    this.#options = options;
    this.#root = `${run.dag_id}/${run.id}`;
    const names = taskIds && new Set([...taskIds, ...(withCallbacks ? OWN_FOLDERS : [])]);
    const folders = names ? [...names].map((name) => `${this.#root}/${name}`) : [this.#root];
    this.#view = logs.view(folders, { isFollowed });
  }

  /** The logs that may have grown since the last call, or all. */
  async *changed(options: { readonly isAll: boolean }): AsyncGenerator<FoundLog, void, undefined> {
    for await (const log of this.#view.changed(options)) {
      const source = this.#source(log.key.slice(this.#root.length + 1));
      if (source !== null) yield { log, source };
    }
  }

  /** Waits for growth since the last call of `changed`, at most about this long. */
  wait(options: { readonly ms: number; readonly stop: AbortSignal }): Promise<void> {
    return this.#view.wait(options);
  }

  /** Ends the current wait, or the next one. */
  wake(): void {
    this.#view.wake();
  }

  close(): void {
    this.#view.close();
  }

  /** null: not wanted. A task may have the name of one of the run's own folders; its logs are then in subfolders. */
  #source(path: string): LogSource | null {
    const { taskIds, withCallbacks } = this.#options;
    const [top = "", index = "", file, ...rest] = path.split("/");
    const name = path.slice(0, -END.length);
    if (file === undefined && OWN_FOLDERS.includes(top) && withCallbacks)
      return { taskId: null, mapIndex: -1, tryNumber: null, name };
    const tryNumber = Number.parseInt(file ?? "", 10);
    if (rest.length > 0 || Number.isNaN(tryNumber) || !/^-?\d+$/.test(index)) return null;
    if (taskIds?.includes(top) === false) return null;
    return { taskId: top, mapIndex: Number(index), tryNumber, name };
  }
}

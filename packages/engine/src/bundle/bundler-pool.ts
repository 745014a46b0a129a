/**
 * Several bundler children share the work of one pass. If a file crashes its child, the other files of that child go to
 * another one, and the suspect is tried once more in a fresh child, because the crashed process carried the side effects
 * of earlier files.
 *
 * A file that is slow to import keeps its child to itself, and the other files of that child go to another one. Callers
 * that do not wait for slow files are notified that the file is late, and get its result from `takeLate`: an endless loop
 * in one file must not delay a change of another one.
 *
 * Children are kept for a while after the last file, because authors save again, and replaced after a number of files,
 * because Node never unloads an imported module.
 */
import { availableParallelism } from "node:os";
import type { InputStamp } from "../code/bundled.ts";
import type { ProcessUser } from "../service/process-user.ts";
import type { BundleResult, DagFile } from "./bundler/protocol.ts";
import { BundlerChild, type Cause, type GoneChild, type ImportUnderWay } from "./bundler-child.ts";

export interface BundlerPoolOptions {
  readonly folder: string;
  readonly outFolder: string;
  readonly importTimeoutMs: number;
  readonly memoryMb?: number;
  readonly children?: number;
  readonly user?: ProcessUser | null | undefined;
  readonly onOutput: (text: string) => void;
  /** A result is available from `takeLate`. */
  readonly onLate?: () => void;
}

export interface BundleListener {
  onResult(file: DagFile, result: BundleResult): void;
  /** The import takes so long that `bundle` does not wait for it. Without this callback, `bundle` waits. */
  onLate?(file: DagFile, inputs: readonly InputStamp[]): void;
}

export interface FileResult {
  readonly file: DagFile;
  readonly result: BundleResult;
}

/** Enough assigned files that esbuild builds the next ones while one is imported. */
const MAX_ASSIGNED = 6;
const FILES_PER_CHILD = 1_000;
const IDLE_MS = 10_000;
const MIN_FILES_PER_CHILD = 8;
/** Maximum number of slow files with a child of their own; further ones share a child with others. */
const MAX_HELD = 8;

export class BundlerPool {
  readonly #options: BundlerPoolOptions;
  readonly #children = new Set<BundlerChild>();
  readonly #retired = new Set<Promise<void>>();
  #queue: DagFile[] = [];
  /** Files to be tried alone in a fresh child. */
  #suspects: DagFile[] = [];
  readonly #tried = new Set<string>();
  #alone: BundlerChild | null = null;
  /** Children reserved for a slow file, by its name. */
  readonly #held = new Map<string, BundlerChild>();
  /** Files that no caller waits for any more. */
  readonly #late = new Set<string>();
  #lateResults: FileResult[] = [];
  #pass = 0;
  #left = 0;
  #listener: BundleListener = { onResult: () => undefined };
  #finish: () => void = () => undefined;
  #idle: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: BundlerPoolOptions) {
    this.#options = options;
  }

  /**
   * Bundles the files; each is answered exactly once, in any order, late files by `takeLate`. One call at a time. A file
   * that is late from an earlier call is started again.
   */
  async bundle(files: readonly DagFile[], listener: BundleListener): Promise<void> {
    if (files.length === 0 || this.#stopped) return;
    if (this.#idle) clearTimeout(this.#idle);
    for (const { file } of files) this.abandon(file);
    this.#pass++;
    this.#queue = [...files];
    for (const file of this.#tried) if (!this.#late.has(file)) this.#tried.delete(file);
    this.#left = files.length;
    this.#listener = listener;
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    this.#feed();
    await finished;
    this.#idle = setTimeout(() => void this.#retireAll(this.#children), IDLE_MS);
    this.#idle.unref();
  }

  /** The results of late files; each once. */
  drainLate(): FileResult[] {
    return this.#lateResults.splice(0);
  }

  /** Drops the result of this file if it is late. */
  abandon(file: string): void {
    this.#lateResults = this.#lateResults.filter((late) => late.file.file !== file);
    if (!this.#late.delete(file)) return;
    this.#suspects = this.#suspects.filter((suspect) => suspect.file !== file);
    this.#tried.delete(file);
    const child = this.#held.get(file);
    this.#held.delete(file);
    if (child) this.#retire(child);
  }

  /** Kills the children; a `bundle` in progress returns with the rest of its files unanswered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#idle) clearTimeout(this.#idle);
    await this.#retireAll([...this.#children, ...this.#held.values(), ...(this.#alone ? [this.#alone] : [])]);
    this.#finish();
  }

  #feed(): void {
    if (this.#stopped) return;
    if (this.#left === 0) this.#finish();
    for (const child of this.#children) this.#fill(child);
    const most = this.#options.children ?? Math.max(1, Math.min(availableParallelism(), 8));
    while (this.#queue.length > 0 && this.#children.size < most) {
      // The first child is worth its start for one file, a further child for several files.
      if (this.#children.size > 0 && this.#queue.length < MIN_FILES_PER_CHILD) break;
      this.#fill(this.#spawn());
    }
    if (this.#alone === null && this.#suspects.length > 0) {
      this.#alone = this.#spawn({ isAlone: true });
      this.#alone.bundle(this.#suspects.shift() as DagFile, this.#pass);
    }
  }

  #fill(child: BundlerChild): void {
    while (
      child.assigned < MAX_ASSIGNED &&
      this.#queue.length > 0 &&
      child.answered + child.assigned < FILES_PER_CHILD
    ) {
      child.bundle(this.#queue.shift() as DagFile, this.#pass);
    }
  }

  #spawn({ isAlone } = { isAlone: false }): BundlerChild {
    const child = new BundlerChild({
      folder: this.#options.folder,
      outFolder: this.#options.outFolder,
      importTimeoutMs: this.#options.importTimeoutMs,
      memoryMb: this.#options.memoryMb ?? 1_024,
      user: this.#options.user ?? null,
      isAlone,
      onOutput: this.#options.onOutput,
      onSlow: (from, importing) => this.#hold(from, importing),
      onDone: (from, file, result) => this.#done(from, file, result),
      onGone: (from, left) => this.#gone(from, left),
    });
    if (!isAlone) this.#children.add(child);
    return child;
  }

  /** Reserves the child for the slow file; callers that do not wait for slow files continue. */
  #hold(child: BundlerChild, { file, inputs }: ImportUnderWay): void {
    if (this.#held.size >= MAX_HELD) return;
    this.#held.set(file.file, child);
    this.#children.delete(child);
    if (child === this.#alone) this.#alone = null;
    this.#queue.unshift(...child.returnQueued(file));
    if (this.#listener.onLate && !this.#late.has(file.file)) {
      this.#late.add(file.file);
      this.#left--;
      this.#listener.onLate(file, inputs);
    }
    this.#feed();
  }

  #done(child: BundlerChild, file: DagFile, result: BundleResult): void {
    const isWornOut = child.assigned === 0 && child.answered >= FILES_PER_CHILD;
    if (child.isAlone || this.#held.delete(file.file) || isWornOut) this.#retire(child);
    this.#answer(file, result);
    this.#feed();
  }

  #gone(child: BundlerChild, { undone, importing, cause }: GoneChild): void {
    this.#children.delete(child);
    if (child === this.#alone) this.#alone = null;
    const wasFresh = child.answered === 0;
    for (const file of undone) {
      this.#held.delete(file.file);
      // No file was being imported: the child or the machine failed. Each file is retried once, then fails.
      const isSuspect = importing === null || importing.file === file;
      if (!isSuspect) this.#queue.push(file);
      else if (child.isAlone || (wasFresh && importing) || this.#tried.has(file.file)) {
        this.#answer(file, blame(file, cause, importing?.inputs ?? []));
      } else {
        this.#tried.add(file.file);
        this.#suspects.push(file);
      }
    }
    this.#feed();
  }

  #answer(file: DagFile, result: BundleResult): void {
    if (this.#late.delete(file.file)) {
      this.#lateResults.push({ file, result });
      this.#options.onLate?.();
      return;
    }
    this.#left--;
    this.#listener.onResult(file, result);
  }

  #retire(child: BundlerChild): void {
    this.#children.delete(child);
    if (child === this.#alone) this.#alone = null;
    const ended = child.stop().finally(() => this.#retired.delete(ended));
    this.#retired.add(ended);
  }

  async #retireAll(children: Iterable<BundlerChild>): Promise<void> {
    for (const child of [...children]) this.#retire(child);
    await Promise.all(this.#retired);
  }
}

function blame(file: DagFile, { code, text }: Cause, inputs: readonly InputStamp[]): BundleResult {
  const message =
    `${file.file}: importing this file ${text} [${code}]. ` +
    "A DAG file must only define DAGs: move work, waiting and endless loops into tasks.";
  return { kind: "failed", stage: "import", message, inputs };
}

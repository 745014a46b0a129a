/**
 * Several bundler children share the work of one pass. A file that takes its child down is blamed alone: the other
 * files that child had in hand go to another one, and the suspect is tried once more in a fresh child, because the
 * process it died in carried what earlier files had left there.
 *
 * Children are kept for a while after the last file, for the author who saves again, and replaced after a number of
 * files: an imported module is never given back.
 */
import { availableParallelism } from "node:os";
import type { BundleResult, DagFile, InputStamp } from "./bundler/protocol.ts";
import { BundlerChild, type GoneChild } from "./bundler-child.ts";

export interface BundlerPoolOptions {
  readonly folder: string;
  readonly outFolder: string;
  readonly importTimeoutMs: number;
  readonly memoryMb?: number;
  readonly children?: number;
  readonly onOutput: (text: string) => void;
}

type OnResult = (file: DagFile, result: BundleResult) => void;

/** Enough in hand that esbuild builds the next ones while one is imported. */
const IN_HAND = 6;
const FILES_PER_CHILD = 1_000;
const IDLE_MS = 10_000;
const MIN_FILES_PER_CHILD = 8;

export class BundlerPool {
  readonly #options: BundlerPoolOptions;
  readonly #children = new Set<BundlerChild>();
  readonly #retired = new Set<Promise<void>>();
  #queue: DagFile[] = [];
  /** To be tried alone in a fresh child. */
  #suspects: DagFile[] = [];
  readonly #tried = new Set<string>();
  #alone: BundlerChild | null = null;
  #pass = 0;
  #left = 0;
  #onResult: OnResult = () => undefined;
  #finish: () => void = () => undefined;
  #idle: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(options: BundlerPoolOptions) {
    this.#options = options;
  }

  /** Bundles the files; each is answered exactly once, in any order. One call at a time. */
  async bundle(files: readonly DagFile[], onResult: OnResult): Promise<void> {
    if (files.length === 0 || this.#stopped) return;
    if (this.#idle) clearTimeout(this.#idle);
    this.#pass++;
    this.#queue = [...files];
    this.#tried.clear();
    this.#left = files.length;
    this.#onResult = onResult;
    const finished = new Promise<void>((resolve) => {
      this.#finish = resolve;
    });
    this.#feed();
    await finished;
    this.#idle = setTimeout(() => void this.#retireAll(), IDLE_MS);
    this.#idle.unref();
  }

  /** Kills the children; a `bundle` under way returns with the rest of its files unanswered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#idle) clearTimeout(this.#idle);
    await this.#retireAll();
    this.#finish();
  }

  #feed(): void {
    if (this.#stopped) return;
    if (this.#left === 0) {
      this.#finish();
      return;
    }
    for (const child of this.#children) this.#fill(child);
    const most = this.#options.children ?? Math.max(1, Math.min(availableParallelism(), 8));
    while (this.#queue.length > 0 && this.#children.size < most) {
      // The first child is worth its start for one file, a further one for a handful.
      if (this.#children.size > 0 && this.#queue.length < MIN_FILES_PER_CHILD) break;
      this.#fill(this.#spawn());
    }
    if (this.#alone === null && this.#suspects.length > 0) {
      this.#alone = this.#spawn(false);
      this.#alone.bundle(this.#suspects.shift() as DagFile, this.#pass);
    }
  }

  #fill(child: BundlerChild): void {
    while (
      child.inHand < IN_HAND &&
      this.#queue.length > 0 &&
      child.answered + child.inHand < FILES_PER_CHILD
    ) {
      child.bundle(this.#queue.shift() as DagFile, this.#pass);
    }
  }

  #spawn(shared = true): BundlerChild {
    const child = new BundlerChild({
      folder: this.#options.folder,
      outFolder: this.#options.outFolder,
      importTimeoutMs: this.#options.importTimeoutMs,
      memoryMb: this.#options.memoryMb ?? 1_024,
      onOutput: this.#options.onOutput,
      onDone: (from, file, result) => this.#done(from, file, result),
      onGone: (from, left) => this.#gone(from, left),
    });
    if (shared) this.#children.add(child);
    return child;
  }

  #done(child: BundlerChild, file: DagFile, result: BundleResult): void {
    const isWornOut = child.inHand === 0 && child.answered >= FILES_PER_CHILD;
    if (child === this.#alone || isWornOut) this.#retire(child);
    this.#answer(file, result);
    this.#feed();
  }

  #gone(child: BundlerChild, { undone, importing, cause }: GoneChild): void {
    this.#children.delete(child);
    const wasAlone = child === this.#alone;
    if (wasAlone) this.#alone = null;
    const wasFresh = child.answered === 0;
    for (const file of undone) {
      // Nobody was being imported: the child or the machine failed. Each file gets one more chance, then is told so.
      const isSuspect = importing === null || importing.file === file;
      if (!isSuspect) this.#queue.push(file);
      else if (wasAlone || (wasFresh && importing) || this.#tried.has(file.file)) {
        this.#answer(file, blame(file, cause, importing?.inputs ?? []));
      } else {
        this.#tried.add(file.file);
        this.#suspects.push(file);
      }
    }
    this.#feed();
  }

  #answer(file: DagFile, result: BundleResult): void {
    this.#left--;
    this.#onResult(file, result);
  }

  #retire(child: BundlerChild): void {
    this.#children.delete(child);
    if (child === this.#alone) this.#alone = null;
    const ended = child.stop().finally(() => this.#retired.delete(ended));
    this.#retired.add(ended);
  }

  async #retireAll(): Promise<void> {
    for (const child of [...this.#children, ...(this.#alone ? [this.#alone] : [])]) this.#retire(child);
    await Promise.all(this.#retired);
  }
}

function blame(file: DagFile, cause: string, inputs: readonly InputStamp[]): BundleResult {
  const message =
    `${file.file}: importing this file ${cause}. ` +
    "A DAG file must only define DAGs: move work, waiting and endless loops into tasks.";
  return { kind: "failed", stage: "import", message, inputs };
}

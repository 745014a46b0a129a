/**
 * Keeps the catalogue in step with the DAG folder: watches it, and makes a pass after each change, and periodically in
 * case a change was missed. One pass at a time; a request that arrives during a pass is served by the next one.
 *
 * The processor itself never loads a DAG file: bundler children do that. It may die at any line: each file is stored
 * completely or not at all, and the next process compares folder and catalogue from the start. Any number may run at once.
 */
import { realpath, rm } from "node:fs/promises";
import { resolve } from "node:path";
import type { Planner } from "../model/calendar/planner.ts";
import { messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import type { ProcessUser } from "../service/process-user.ts";
import type { Service } from "../service/service.ts";
import type { Database } from "../store/database/database.ts";
import { BundlerPool } from "./bundler-pool.ts";
import { DagFolder } from "./dag-files.ts";
import { FileLedger } from "./file-ledger.ts";
import { FolderWatch } from "./folder-watch.ts";
import { Pass, type PassDependencies, type PassReport } from "./pass.ts";
import { makeScratchFolder } from "./scratch-folder.ts";

export interface DagProcessorOptions {
  readonly database: Database;
  readonly folder: string;
  readonly logger: Logger;
  /** Plans the next run of a DAG whose schedule is new or changed. */
  readonly plan: Planner;
  readonly isPausedAtCreation: boolean;
  /** The names of the configured executors. Default: only the local one. */
  readonly executors?: readonly string[];
  /** Called after a pass that changed the catalogue. */
  readonly onChange?: () => void;
  /** How often the folder is scanned although no change was reported. */
  readonly rescanMs?: number;
  /** Where the record of unchanged files is kept across restarts; without it the first pass bundles everything. */
  readonly ledgerPath?: string;
  readonly importTimeoutMs?: number;
  /** Heap limit of a bundler child. */
  readonly memoryMb?: number;
  /** Number of concurrent bundler children. Default: one per core. */
  readonly children?: number;
  /** The account that DAG files are imported as, which requires root. Default: the account of this process. */
  readonly user?: ProcessUser | null | undefined;
}

const RESCAN_MS = 60_000;
const IMPORT_TIMEOUT_MS = 30_000;
const DEBOUNCE_MS = 50;
const AFTER_ERROR_MS = 2_000;
const SETTLE_MS = 100;
const MIN_RETRY_MS = 60_000;

export class DagProcessor implements Service {
  readonly name = "dag-processor";
  readonly #options: DagProcessorOptions;
  readonly #watch: FolderWatch;
  #prepared: Promise<PassDependencies> | null = null;
  #passing: Promise<PassReport> | null = null;
  #next: Promise<PassReport> | null = null;
  #suspects = new Set<string>();
  #outFolder: string | null = null;
  #isFirst = true;
  #isWatching = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: DagProcessorOptions) {
    this.#options = options;
    this.#watch = new FolderWatch({
      debounceMs: DEBOUNCE_MS,
      onChange: (paths) => this.#changed(paths),
      onError: (folder, error) =>
        options.logger.warn("could not watch a folder; a rescan finds its changes", {
          folder,
          error: messageOf(error),
        }),
    });
  }

  /** Resolves when the folder is readable and watched; the first pass continues in the background. */
  async start(): Promise<void> {
    const { folder } = await this.#prepare();
    const { folders } = await folder.scan();
    this.#isWatching = true;
    this.#watch.watch(folders);
    this.#runInBackground();
  }

  async stop(): Promise<void> {
    this.#isWatching = false;
    this.#watch.close();
    if (this.#timer) clearTimeout(this.#timer);
    const prepared = await this.#prepared?.catch(() => null);
    this.#prepared = null;
    this.#isFirst = true;
    await prepared?.pool.stop();
    await (this.#next ?? this.#passing)?.catch(() => undefined);
    if (this.#outFolder !== null) await rm(this.#outFolder, { recursive: true, force: true });
  }

  /** Runs a whole pass that begins after this call. */
  runOnce(): Promise<PassReport> {
    if (this.#next) return this.#next;
    if (!this.#passing) return this.#begin();
    const begin = () => this.#begin();
    this.#next = this.#passing.then(begin, begin);
    return this.#next;
  }

  #begin(): Promise<PassReport> {
    this.#next = null;
    const pass = this.#pass().finally(() => {
      if (this.#passing === pass) this.#passing = null;
    });
    this.#passing = pass;
    return pass;
  }

  async #pass(): Promise<PassReport> {
    const dependencies = await this.#prepare();
    const suspects = this.#suspects;
    this.#suspects = new Set();
    // A single pass waits for slow files; while watching, the next pass handles them.
    const pass = new Pass(dependencies, { suspects, waits: !this.#isWatching });
    try {
      const report = await pass.run(this.#isFirst);
      this.#isFirst = false;
      if (report.published + report.removed > 0) {
        const { published, unchanged, failed, removed, ms } = report;
        this.#options.logger.info("DAGs loaded", { published, unchanged, failed, removed, ms });
        this.#options.onChange?.();
      }
      return report;
    } catch (error) {
      for (const path of suspects) this.#suspects.add(path);
      throw error;
    } finally {
      if (this.#isWatching) {
        const isWider = this.#watch.watch([...pass.folders, ...dependencies.ledger.inputFolders()]);
        // A folder may have changed between being read and being watched, a file while it was bundled.
        if (isWider || dependencies.ledger.hasUnsettled) this.#schedule(SETTLE_MS);
      }
    }
  }

  #changed(paths: ReadonlySet<string>): void {
    for (const path of paths) this.#suspects.add(path);
    this.#runInBackground();
  }

  #runInBackground(): void {
    if (!this.#isWatching) return;
    this.#schedule(this.#options.rescanMs ?? RESCAN_MS);
    this.runOnce().catch((error: unknown) => {
      if (!this.#isWatching) return;
      this.#options.logger.error("DAG folder pass failed; retrying", { error: messageOf(error) });
      this.#schedule(AFTER_ERROR_MS);
    });
  }

  #schedule(ms: number): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#runInBackground(), ms);
    this.#timer.unref();
  }

  #prepare(): Promise<PassDependencies> {
    this.#prepared ??= this.#open();
    // A folder that is missing now may exist next time.
    this.#prepared.catch(() => {
      this.#prepared = null;
    });
    return this.#prepared;
  }

  async #open(): Promise<PassDependencies> {
    const {
      database,
      logger,
      plan,
      isPausedAtCreation,
      ledgerPath,
      user,
      rescanMs = RESCAN_MS,
    } = this.#options;
    const given = resolve(this.#options.folder);
    await new DagFolder(given).scan();
    // esbuild reports files by their real paths.
    const path = await realpath(given);
    this.#outFolder = await makeScratchFolder(user);
    const pool = new BundlerPool({
      folder: path,
      outFolder: this.#outFolder,
      importTimeoutMs: this.#options.importTimeoutMs ?? IMPORT_TIMEOUT_MS,
      memoryMb: this.#options.memoryMb,
      children: this.#options.children,
      user,
      onOutput: (text) => logger.debug("output of a DAG file", { text }),
      onLate: () => this.#runInBackground(),
    });
    return {
      database,
      folder: new DagFolder(path),
      ledger: new FileLedger(path, ledgerPath ?? null),
      pool,
      logger,
      plan,
      isPausedAtCreation,
      executors: this.#options.executors ?? ["local"],
      retryMs: Math.max(rescanMs, MIN_RETRY_MS),
    };
  }
}

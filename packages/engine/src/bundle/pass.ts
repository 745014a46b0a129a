/**
 * One pass over the DAG folder: find changes, bundle the files, store them. An interrupted pass (the database became
 * unavailable, the process died) has stored each file completely or not at all; the next pass does the rest.
 */

import type { Bundled, InputStamp } from "../code/bundled.ts";
import type { Planner } from "../model/calendar/planner.ts";
import type { Logger } from "../service/logger.ts";
import {
  type CatalogueFile,
  readCatalogue,
  recordImportError,
  removeFiles,
} from "../store/dag/dag-catalogue.ts";
import type { FileOutcome } from "../store/dag/dag-publish.ts";
import type { Database } from "../store/database/database.ts";
import type { BundleResult, DagFile, ImportFailure } from "./bundler/protocol.ts";
import type { BundlerPool } from "./bundler-pool.ts";
import type { DagFolder, FoundFile } from "./dag-files.ts";
import type { FileLedger, Outcome } from "./file-ledger.ts";
import { InputView } from "./input-view.ts";
import { NameOrder } from "./name-order.ts";
import { ignoredQueues, unknownExecutor } from "./placement.ts";
import { Publisher } from "./publisher.ts";

export interface PassReport {
  /** Files with a new DAG, a new version or a returned DAG. */
  readonly published: number;
  /** Files whose DAGs have not changed. */
  readonly unchanged: number;
  /** Files that have an import error now. */
  readonly failed: number;
  /** Deleted files. */
  readonly removed: number;
  /** Files that went through the bundler. */
  readonly bundled: number;
  /** Files that are still being imported: a later pass gets their result. */
  readonly late: number;
  readonly ms: number;
}

export interface PassDependencies {
  readonly database: Database;
  readonly folder: DagFolder;
  readonly ledger: FileLedger;
  readonly pool: BundlerPool;
  readonly logger: Logger;
  readonly plan: Planner;
  readonly isPausedAtCreation: boolean;
  /** The executor names that tasks may use. */
  readonly executors: readonly string[];
  /** The log level of a new import error. */
  readonly failureLevel: "warn" | "debug";
  /** The shortest time after which a failed file is retried although nothing changed. */
  readonly retryMs: number;
}

const MAX_RETRY_MS = 3_600_000;
const ID_TAKEN = "DAG_ID_TAKEN";
const EXPORT_IT = "export default dag(…)";

export class Pass {
  readonly #with: PassDependencies;
  readonly #view: InputView;
  readonly #suspects: ReadonlySet<string>;
  readonly #waits: boolean;
  readonly #changed = new Set<string>();
  readonly #loaded = new Set<string>();
  #taken: { readonly file: string; readonly bundled: Bundled; readonly message: string }[] = [];
  readonly #paths = new Map<string, DagFile>();
  #folders: readonly string[] = [];
  #bundled = 0;
  #removed: string[] = [];

  /** `suspects`: paths that were reported as changed. `waits`: also for files that are slow to import. */
  constructor(
    dependencies: PassDependencies,
    { suspects, waits }: { readonly suspects: ReadonlySet<string>; readonly waits: boolean },
  ) {
    this.#with = dependencies;
    this.#suspects = suspects;
    this.#waits = waits;
    this.#view = new InputView(suspects);
  }

  /** The folders that this pass scanned. */
  get folders(): readonly string[] {
    return this.#folders;
  }

  /** `isFirst`: the first pass of this process; only then the whole catalogue is compared with the folder. */
  async run(isFirst: boolean): Promise<PassReport> {
    const started = performance.now();
    const { database, folder, ledger, logger } = this.#with;
    const catalogue = await readCatalogue(database);
    if (isFirst) await ledger.load(catalogue);
    const { files, folders } = await folder.scan(this.#suspects);
    this.#folders = folders;
    for (const file of files) this.#paths.set(file.file, file);
    await this.#remove(isFirst ? [...liveFiles(catalogue), ...ledger.files()] : ledger.files());
    const todo = await this.#outdated(files, catalogue);
    await this.#bundle(todo, catalogue);
    await this.#resolveMovedDags();
    this.#nameForgetful(isFirst);
    await ledger
      .save()
      .catch((error: unknown) => logger.warn("could not save the DAG file ledger", { error }));
    const count = (kind: Outcome["kind"]) =>
      files.filter(({ file }) => ledger.get(file)?.outcome.kind === kind).length;
    const [failed, late] = [count("failed"), count("late")];
    return {
      published: this.#changed.size,
      unchanged: files.length - failed - late - this.#changed.size,
      failed,
      late,
      removed: this.#removed.length,
      bundled: this.#bundled,
      ms: Math.round(performance.now() - started),
    };
  }

  /** Files that existed before and do not now. Runs first, so that a renamed file finds its DAGs free. */
  async #remove(before: readonly string[]): Promise<void> {
    this.#removed = [...new Set(before)].filter((file) => !this.#paths.has(file));
    if (this.#removed.length === 0) return;
    const { database, ledger, logger, pool } = this.#with;
    const dags = await removeFiles(database, this.#removed);
    for (const file of this.#removed) {
      ledger.forget(file);
      pool.abandon(file);
    }
    logger.info("DAG files removed", { files: this.#removed.slice(0, 10), dags: dags.slice(0, 10) });
  }

  async #outdated(
    files: readonly FoundFile[],
    catalogue: ReadonlyMap<string, CatalogueFile>,
  ): Promise<FoundFile[]> {
    const { ledger } = this.#with;
    const known = new Set([...catalogue.values()].flatMap(({ dags }) => [...dags.keys()]));
    const unchanged = await Promise.all(files.map(({ file }) => ledger.isUnchanged(file, this.#view)));
    const outdated = new Set(files.filter((_, index) => !unchanged[index]));
    const isMoved = outdated.size > 0 || this.#removed.length > 0 || this.#suspects.size > 0;
    for (const file of files) {
      const outcome = ledger.get(file.file)?.outcome;
      if (outcome?.kind === "failed" && ((outcome.anyChange && isMoved) || Date.now() >= outcome.retryAt)) {
        outdated.add(file);
      }
      // A DAG that a user deleted while its file still exists returns as a new DAG.
      if (outcome?.kind === "ok" && outcome.dagIds.some((id) => !known.has(id))) outdated.add(file);
    }
    return files.filter((file) => outdated.has(file));
  }

  async #bundle(files: readonly DagFile[], catalogue: ReadonlyMap<string, CatalogueFile>): Promise<void> {
    const { pool } = this.#with;
    const again = new Set(files.map(({ file }) => file));
    const late = pool.drainLate().filter(({ file }) => !again.has(file.file));
    if (files.length + late.length === 0) return;
    const publisher = this.#publisher();
    const errors: Promise<unknown>[] = [];
    /** Returns the function that stores the file, or null if there is nothing to store. */
    const judge = ({ file }: DagFile, result: BundleResult): (() => void) | null => {
      this.#bundled++;
      const failure = result.kind === "bundled" ? this.#misplaced(file, result) : result;
      if (failure !== null) errors.push(this.#record(file, failure).catch((error: unknown) => error));
      return failure === null ? () => publisher.add(file, result as Bundled) : null;
    };
    for (const { file, result } of late) {
      this.#isLateNoMore(file.file);
      judge(file, result)?.();
    }
    const order = new NameOrder([...again]);
    const onResult = (file: DagFile, result: BundleResult) => {
      const store = judge(file, result);
      const waits = store !== null && givesNewDag(result, catalogue.get(file.file));
      if (!waits) store?.();
      order.answer(file.file, waits ? store : null);
    };
    const onLate = (file: DagFile, inputs: readonly InputStamp[]) => {
      this.#isLate(file.file, inputs);
      order.answer(file.file, null);
    };
    await pool.bundle(files, this.#waits ? { onResult } : { onResult, onLate });
    await publisher.drain();
    for (const error of await Promise.all(errors)) if (error !== undefined) throw error;
  }

  #misplaced(file: string, { inputs, manifests }: Bundled): ImportFailure | null {
    const message = unknownExecutor(file, manifests, this.#with.executors);
    return message === null ? null : { kind: "failed", stage: "import", message, inputs };
  }

  /** No pass starts the file again while its inputs are unchanged; saving it meanwhile does start it again. */
  #isLate(file: string, inputs: readonly InputStamp[]): void {
    const { ledger, logger } = this.#with;
    const before = ledger.get(file)?.outcome ?? null;
    ledger.remember(file, { inputs, verifiedAt: Date.now(), outcome: { kind: "late", before } });
    const tell = before === null || before.kind === "ok" ? "warn" : "debug";
    logger[tell]("DAG file takes long to import; the others do not wait for it", { file });
  }

  /** If its result cannot be stored, the next pass starts it again: without inputs it counts as changed. */
  #isLateNoMore(file: string): void {
    const { ledger } = this.#with;
    const outcome = ledger.get(file)?.outcome;
    if (outcome?.kind !== "late") return;
    ledger.remember(file, { inputs: [], verifiedAt: 0, outcome: outcome.before ?? { kind: "unsettled" } });
  }

  #publisher(): Publisher {
    const { database, plan, isPausedAtCreation } = this.#with;
    return new Publisher({
      database,
      plan,
      isPausedAtCreation,
      onStored: (file, bundled, outcome) => this.#stored(file, bundled, outcome),
      onRefused: (file, { inputs }, message) =>
        this.#failed(file, { message, inputs, anyChange: false, isNews: true }),
    });
  }

  #stored(file: string, bundled: Bundled, { changed, taken }: FileOutcome): void {
    if (taken) {
      const message =
        `${file}: DAG "${taken.dagId}" is already defined in ${taken.by}: ` +
        `give one of the two another id, or remove one. [${ID_TAKEN}]`;
      this.#taken.push({ file, bundled, message });
      return;
    }
    const { executors, ledger, logger } = this.#with;
    const dagIds = bundled.manifests.map(({ dagId }) => dagId);
    ledger.remember(file, {
      inputs: bundled.inputs,
      verifiedAt: Date.now(),
      outcome: bundled.settled
        ? { kind: "ok", hash: bundled.hash, dagIds, unexported: bundled.unexported }
        : { kind: "unsettled" },
    });
    this.#loaded.add(file);
    if (changed.length > 0) this.#changed.add(file);
    const [standard = "local"] = executors;
    const queues = changed.length > 0 ? ignoredQueues(bundled.manifests, standard).slice(0, 10) : [];
    if (queues.length > 0)
      logger.warn("tasks of the local executor name queues: it runs all tasks alike", { file, queues });
    if (changed.length > 0) logger.debug("DAG file loaded", { file, dags: changed.slice(0, 10) });
  }

  /** Not an error, because the file may be imported by others; but an author who expects a DAG must find the reason. */
  #nameForgetful(isFirst: boolean): void {
    if (!isFirst && this.#loaded.size === 0) return;
    const { ledger, logger } = this.#with;
    for (const { file, unexported } of ledger.forgetful()) {
      if (!isFirst && !this.#loaded.has(file)) continue;
      if (unexported.length > 0) {
        const dags = unexported.slice(0, 10);
        logger.warn("DAG file creates a DAG and does not export it", { file, dags, remedy: EXPORT_IT });
      } else {
        const remedy = `${EXPORT_IT}; or name the file in .tradewindignore`;
        logger.warn("file imports tradewind but exports no DAG, and no DAG file imports it", {
          file,
          remedy,
        });
      }
    }
  }

  /** A DAG may have moved between two files of this pass, with the old one stored after the new one: check again. */
  async #resolveMovedDags(): Promise<void> {
    if (this.#taken.length === 0) return;
    const again = this.#publisher();
    for (const { file, bundled } of this.#taken.splice(0)) again.add(file, bundled);
    await again.drain();
    for (const { file, bundled, message } of this.#taken) {
      const isNews = await recordImportError(this.#with.database, file, message);
      this.#failed(file, { message, inputs: bundled.inputs, anyChange: true, isNews });
    }
  }

  async #record(file: string, { message, inputs, stage }: ImportFailure): Promise<undefined> {
    const isNews = await recordImportError(this.#with.database, file, message);
    this.#failed(file, { message, inputs, anyChange: stage === "bundle", isNews });
  }

  #failed(
    file: string,
    failure: { message: string; inputs: readonly InputStamp[]; anyChange: boolean; isNews: boolean },
  ): void {
    const { failureLevel, ledger, logger, retryMs } = this.#with;
    const before = ledger.get(file)?.outcome;
    const delayMs = before?.kind === "failed" ? Math.min(before.delayMs * 2, MAX_RETRY_MS) : retryMs;
    const now = Date.now();
    ledger.remember(file, {
      inputs: failure.inputs,
      verifiedAt: now,
      outcome: { kind: "failed", anyChange: failure.anyChange, delayMs, retryAt: now + delayMs },
    });
    // It is retried when another file changes, and periodically: a known error is not logged again as a warning.
    const tell = failure.isNews || before?.kind !== "failed" ? failureLevel : "debug";
    logger[tell]("DAG file failed to import", { file, error: failure.message });
  }
}

/** True if another file might get one of its DAGs first. */
function givesNewDag(result: BundleResult, known: CatalogueFile | undefined): boolean {
  const isOwn = (dagId: string) => known?.dags.get(dagId)?.isStale === false;
  return result.kind === "bundled" && result.manifests.some(({ dagId }) => !isOwn(dagId));
}

/** Files with entries in the catalogue that are removed with the file. */
function liveFiles(catalogue: ReadonlyMap<string, CatalogueFile>): string[] {
  return [...catalogue]
    .filter(([, { dags, error }]) => error !== null || [...dags.values()].some((dag) => !dag.isStale))
    .map(([file]) => file);
}

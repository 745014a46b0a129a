/**
 * Callbacks that the task's own process could not run (it was killed), and those of runs. Each is a row, written in
 * the transaction of its event: a job that dies before the callback ran leaves it to the next one.
 */
import { join } from "node:path";
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { BundleCache } from "../execute/bundle-cache.ts";
import type { Executor } from "../execute/contract.ts";
import type { Logger } from "../service/logger.ts";
import { adoptCallbacks, deleteCallback, loadCallbacks, type StoredCallback } from "../store/callbacks.ts";
import type { Database } from "../store/database.ts";
import { runFacts } from "./run-facts.ts";

export interface CallbacksOptions {
  readonly database: Database;
  readonly bundles: BundleCache;
  readonly logsDir: string;
  readonly logger: Logger;
  readonly executor: Executor | undefined;
}

export class Callbacks {
  readonly #options: CallbacksOptions;

  constructor(options: CallbacksOptions) {
    this.#options = options;
  }

  /** If this fails, the rows are still there and the next heartbeat of some job adopts them once this one is gone. */
  async submit(ids: readonly string[]): Promise<void> {
    const { database, bundles, executor, logsDir, logger } = this.#options;
    try {
      for (const row of await loadCallbacks(database, ids)) {
        executor?.submitCallback({
          callbackId: row.id,
          bundleHash: row.bundle_hash,
          bundlePath: await bundles.path(row.bundle_hash),
          taskId: row.task_id,
          event: row.event,
          tryNumber: row.try_number,
          error: row.error as ErrorFacts | null,
          run: runFacts(row),
          dagRunId: row.dag_run_id,
          conf: row.conf,
          logPath: logPath(logsDir, row),
        });
      }
    } catch (error) {
      logger.warn("callbacks have to wait", { error: String(error) });
    }
  }

  async adopt(jobId: number): Promise<void> {
    const ids = await adoptCallbacks(this.#options.database, jobId);
    if (ids.length > 0) await this.submit(ids);
  }

  /** A callback that threw has run: it is not repeated, its error is in its log. One that was cut off stays. */
  async ended(id: string, error: ErrorFacts | null): Promise<void> {
    const { database, logger } = this.#options;
    if (error?.code === "EXECUTOR_STOPPED") return;
    if (error) logger.warn("a callback failed", { callback: id, error: error.message });
    await deleteCallback(database, id).catch((cause) =>
      logger.warn("a callback that ran could not be removed and may run again", { error: String(cause) }),
    );
  }
}

function logPath(logsDir: string, row: StoredCallback): string {
  return join(
    logsDir,
    row.dag_id,
    String(row.dag_run_id),
    "callbacks",
    `${row.task_id ?? "run"}-${row.id}.log`,
  );
}

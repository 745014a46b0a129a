/**
 * A report may have a value that the database rejects: a date out of range, a character that it cannot store. Its batch
 * would be rejected forever, with all other reports in it. So the reports of such a batch are applied again one at a time,
 * until the invalid one is found; that attempt fails.
 */

import type { AttemptReport } from "../../execute/contract.ts";
import type { AttemptOutcome } from "../../model/index.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { STATE_MOVED } from "../../store/task/instance-moves.ts";
import { FENCED, POOL_FULL } from "../../store/task/run-batch.ts";

/** The database rejected the batch as a whole: fenced, state moved, pool full, deadlock or lock timeout. */
const REFUSALS: ReadonlySet<string> = new Set([FENCED, STATE_MOVED, POOL_FULL, "40P01", "55P03"]);
/** Invalid data, a limit of the database, a constraint: a retry fails again. */
const HOPELESS = /^(?:22|23|54)/;

/** The batch may succeed after its runs are loaded and decided again. */
export function isRefusal(state: string): boolean {
  return REFUSALS.has(state);
}

export class PoisonReports {
  /** The number of reports to apply one at a time. */
  #left = 0;
  readonly #blamed = new Set<string>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Maximum number of reports in the next batch. */
  get limit(): number {
    return this.#left > 0 ? 1 : Number.POSITIVE_INFINITY;
  }

  /** A batch with these was stored. */
  passed(reports: readonly AttemptReport[]): void {
    if (this.#left === 0) return;
    this.#left = Math.max(0, this.#left - reports.length);
    for (const { attempt } of reports) this.#blamed.delete(attempt);
  }

  /** A batch with these reports was rejected: returns the reports to apply instead. null: none of them is the cause. */
  refused(reports: readonly AttemptReport[], state: string, error: unknown): readonly AttemptReport[] | null {
    if (!HOPELESS.test(state) || reports.length === 0) return null;
    this.#logger.error("database rejected a report", {
      error: messageOf(error),
      reports: reports.length,
    });
    if (reports.length > 1) {
      this.#left = reports.length;
      return reports;
    }
    const [report] = reports as [AttemptReport];
    if (report.type !== "ended" || this.#blamed.has(report.attempt)) return null;
    this.#blamed.add(report.attempt);
    this.#left = Math.max(this.#left, 1);
    return [{ ...report, outcome: unstorable(messageOf(error)) }];
  }
}

function unstorable(why: string): AttemptOutcome {
  const message = `The database does not take what this task ended with (${why}). Look at its output, its error, and the times it names.`;
  const error = { name: "UnstorableError", message, stack: null, code: "TASK_OUTCOME_UNSTORABLE" };
  return { kind: "failed", error, retry: false };
}

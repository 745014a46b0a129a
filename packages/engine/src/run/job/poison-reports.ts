/**
 * A report may hold what the database does not take: a moment beyond its calendar, a text it has no characters for. The
 * batch it is in is void, and would be void forever, with everything else that is in it. So what was in such a batch
 * is read again one report at a time, until it is known whose it is; that attempt has then failed.
 */

import type { AttemptReport } from "../../execute/contract.ts";
import type { AttemptOutcome } from "../../model/index.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { STATE_MOVED } from "../../store/task/instance-moves.ts";
import { FENCED, POOL_FULL } from "../../store/task/run-batch.ts";

/** The database said no to a batch as a whole: fenced, moved on, full, or in the way of others. */
const REFUSALS: ReadonlySet<string> = new Set([FENCED, STATE_MOVED, POOL_FULL, "40P01", "55P03"]);
/** Data that cannot be, a limit of the database, a constraint: trying again cannot help. */
const HOPELESS = /^(?:22|23|54)/;

/** Read again and decided again, it may be taken. */
export function isRefusal(state: string): boolean {
  return REFUSALS.has(state);
}

export class PoisonReports {
  /** Reports to be read one at a time. */
  #left = 0;
  readonly #blamed = new Set<string>();
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** How many reports the next batch may have. */
  get limit(): number {
    return this.#left > 0 ? 1 : Number.POSITIVE_INFINITY;
  }

  /** A batch with these was stored. */
  passed(reports: readonly AttemptReport[]): void {
    if (this.#left === 0) return;
    this.#left = Math.max(0, this.#left - reports.length);
    for (const { attempt } of reports) this.#blamed.delete(attempt);
  }

  /** A batch with these was refused as hopeless: what to read instead. null: none of them is to blame. */
  refused(reports: readonly AttemptReport[], state: string, error: unknown): readonly AttemptReport[] | null {
    if (!HOPELESS.test(state) || reports.length === 0) return null;
    this.#logger.error("the database does not take a report", {
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

/**
 * The reports that workers have stored for the runs and callbacks of this job. A report is read once, applied in a batch like
 * a report of a local executor, and deleted in that batch; while it is on its way it is not read again.
 */
import type { ErrorFacts } from "@tradewind/sdk/program";
import type { AttemptReport, SignalAction } from "../../execute/contract.ts";
import type { AttemptOutcome } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { deleteAssignments } from "../../store/execute/assignments.ts";
import { READ_LIMIT, readReports, type StoredReport } from "../../store/execute/reports.ts";

export interface ReportReceivers {
  readonly attempt: (report: AttemptReport) => void;
  /** Resolves when the end of the callback is handled; never rejects. `lost`: its worker did not report the end. */
  readonly callback: (id: string, end: { error: ErrorFacts | null } | { lost: string }) => Promise<void>;
  readonly reaction: (id: string, answer: { action: SignalAction | null; error: ErrorFacts | null }) => void;
}

/** The content of an `ended` row, by the kind of its assignment; `lost`: the worker did not report the end. */
type EndContent =
  | { readonly lost: string }
  /** `started`: the start, if it was not reported before. */
  | { readonly outcome: AttemptOutcome; readonly started?: { pid: number; beforeMs: number } | null }
  | { readonly error: ErrorFacts | null; readonly action?: SignalAction | null };

export class StoredReports {
  readonly #database: Database;
  readonly #receivers: ReportReceivers;
  /** Rows that were read and are not deleted yet. */
  readonly #known = new Set<number>();
  #isDue = true;

  constructor(database: Database, receivers: ReportReceivers) {
    this.#database = database;
    this.#receivers = receivers;
  }

  /** There may be new reports. */
  requestRead(): void {
    this.#isDue = true;
  }

  async read(jobId: number): Promise<void> {
    if (!this.#isDue) return;
    this.#isDue = false;
    try {
      const rows = await readReports(this.#database, jobId, this.#known);
      if (rows.length === READ_LIMIT) this.#isDue = true;
      for (const row of rows) this.#receive(row);
      // The answer is in memory now. If this job dies, the next owner asks again.
      const answered = rows.filter(({ kind, type }) => kind === "reaction" && type === "ended");
      await deleteAssignments(
        this.#database,
        answered.map((row) => row.assignment_id),
      );
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
  }

  /** These reports are stored, superseded, or left to another owner of their run. */
  forget(reports: readonly AttemptReport[]): void {
    for (const { stored } of reports) if (stored) this.#known.delete(stored.report);
  }

  reset(): void {
    this.#known.clear();
    this.#isDue = true;
  }

  #receive(row: StoredReport): void {
    const { assignment_id: id, content, hostname, kind, type, worker_job: workerJob } = row;
    if (kind === "attempt") {
      this.#known.add(row.id);
      const stored = { report: row.id, runId: row.dag_run_id ?? 0, workerJob, hostname };
      const about = { attempt: id, at: row.at.getTime(), stored };
      const end = content as unknown as EndContent;
      const start = type === "started" ? { ...(content as { pid: number }), beforeMs: 0 } : startOf(end);
      if (start !== null) {
        const at = about.at - start.beforeMs;
        // Deleted with its end, unless it has a row of its own.
        const own = type === "started" ? {} : { stored: { ...stored, report: 0 } };
        this.#receivers.attempt({ ...about, at, ...own, type: "started", pid: start.pid });
      }
      if (type !== "ended") return;
      const isHostGone = "lost" in end;
      const outcome = outcomeOf(end);
      this.#receivers.attempt({ ...about, type, outcome, stored: { ...stored, isHostGone } });
      return;
    }
    if (type === "started") return;
    const end = content as unknown as EndContent;
    if (kind === "callback") {
      const what = "lost" in end ? end : { error: "error" in end ? end.error : null };
      // Until its row is deleted it must not be read again.
      this.#known.add(row.id);
      void this.#receivers.callback(id, what).then(() => this.#known.delete(row.id));
    } else {
      const error = "lost" in end ? stopped(end.lost) : "error" in end ? end.error : null;
      this.#receivers.reaction(id, { action: ("action" in end && end.action) || null, error });
    }
  }
}

function startOf(end: EndContent): { readonly pid: number; readonly beforeMs: number } | null {
  return ("started" in end && end.started) || null;
}

function outcomeOf(end: EndContent): AttemptOutcome {
  return "outcome" in end ? end.outcome : { kind: "lost", reason: "lost" in end ? end.lost : "no outcome" };
}

function stopped(reason: string): ErrorFacts {
  return {
    name: "TaskError",
    message: `It was not finished: ${reason}.`,
    stack: null,
    code: "EXECUTOR_STOPPED",
  };
}

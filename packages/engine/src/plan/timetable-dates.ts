/**
 * The dates of a user-defined timetable in a range, for a backfill. The class runs in a child process, in pieces: no list
 * delays another for longer than its time limit, and every answer is validated.
 *
 * Nothing is stored: after a crash the next call gets the same answers, because the class is a pure function. The caller
 * stores the result, all at once.
 */
import type { DueFacts } from "@tradewind/sdk/program";
import type { BundleCache } from "../code/bundle-cache.ts";
import { EngineError } from "../service/errors.ts";
import type { ProcessUser } from "../service/process-user.ts";
import { TimetableProcess } from "./timetable-process.ts";
import type { DuePiece } from "./timetable-protocol.ts";

/** More dates than this are rejected: they are stored as a list with the backfill. */
export const MAX_LISTED_DATES = 10_000;

const PIECE = 500;
const PIECE_MS = 1_000;
const LIST_MS = 20_000;
/**
 * Without an earlier run and without a start of the DAG, the list starts this long before the range: a class may begin
 * with the day, the week or the month after the given one.
 */
const LEAD_MS = 31 * 86_400_000;

export interface DatesQuery {
  readonly dagId: string;
  readonly bundleHash: string;
  /** Logical dates, both included. */
  readonly from: number;
  readonly to: number;
  /** Runs that are due later are excluded. */
  readonly until: number;
  /** The DAG's start. */
  readonly start: number | null;
  /** The last run before `from` that the schedule has created. */
  readonly last: Omit<DueFacts, "runAfter"> | null;
}

export interface TimetableDatesOptions {
  readonly bundles: BundleCache;
  /** Time limit of one answer, and of all of them together. */
  readonly answerMs?: number;
  readonly listMs?: number;
  readonly user?: ProcessUser | null | undefined;
}

export class TimetableDates {
  readonly #options: TimetableDatesOptions;
  readonly #process: TimetableProcess;

  constructor(options: TimetableDatesOptions) {
    this.#options = options;
    const { answerMs, user } = options;
    this.#process = new TimetableProcess({ user, ...(answerMs !== undefined && { answerMs }) });
    options.bundles.onOtherPackages(() => this.#process.replaceChild());
  }

  /**
   * The earliest first; one more than MAX_LISTED_DATES if there are more than that.
   *
   * @throws EngineError with the code of the user's error, of the failure of its process, or TIMETABLE_SLOW.
   */
  async list(wish: DatesQuery): Promise<DueFacts[]> {
    const { dagId, from, until } = wish;
    const { bundles, listMs = LIST_MS } = this.#options;
    const bundle = await bundles.path(wish.bundleHash);
    const endAt = performance.now() + listMs;
    const piece = { from, until, limit: PIECE, forMs: Math.min(PIECE_MS, listMs) };
    const runs: DueFacts[] = [];
    let call = firstCall(wish);
    for (;;) {
      const found = await this.#process.list({ bundle, dagId, call, piece });
      requireOrder(found, call.last?.logicalDate ?? Number.NEGATIVE_INFINITY, wish);
      runs.push(...found.runs);
      const { last } = found;
      if (last === null || runs.length > MAX_LISTED_DATES) return runs.slice(0, MAX_LISTED_DATES + 1);
      if (performance.now() >= endAt) throw slow(last.logicalDate, listMs);
      call = { ...call, last, now: Math.max(call.now, last.runAfter) };
    }
  }

  /** Pending calls are rejected. */
  stop(): Promise<void> {
    return this.#process.stop();
  }
}

/** The DAG's own end does not count: a user requested these dates. */
function firstCall({ from, to, start, last }: DatesQuery) {
  const begin = start !== null && start <= from ? start : last === null ? from - LEAD_MS : null;
  const now = last?.intervalEnd ?? begin ?? from;
  return { last, now, start: begin, end: to, catchup: true, slackMs: 0 };
}

/** Validated because user code shares the process that sends it. */
function requireOrder({ runs, last }: DuePiece, after: number, { from, to, until }: DatesQuery): void {
  let before = Math.max(after, from - 1);
  for (const { logicalDate, runAfter } of runs) {
    if (logicalDate <= before || logicalDate > to || runAfter > until) throw outOfOrder();
    before = logicalDate;
  }
  // The next piece starts there: it must make progress, or the listing would never end.
  const reached = last?.logicalDate ?? Number.POSITIVE_INFINITY;
  if (reached <= after || (runs.length > 0 && reached < before)) throw outOfOrder();
}

function outOfOrder(): EngineError {
  return new EngineError(
    "TIMETABLE_NONSENSE",
    "The timetable has no answer: its process sent dates that are out of order or out of the range.",
  );
}

function slow(reached: number, listMs: number): EngineError {
  return new EngineError(
    "TIMETABLE_SLOW",
    `Listing the dates of the timetable took more than ${listMs / 1000} s and reached only ${new Date(reached).toISOString()}: split the range, or make next() faster. Listing begins at the start of the DAG if that is before the range`,
  );
}

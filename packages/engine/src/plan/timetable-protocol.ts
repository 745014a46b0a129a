/** The messages between a scheduler and its timetable process: one request at a time, one answer each. */
import type { DueCall, DueFacts, DueOutcome, ErrorFacts } from "@tradewind/sdk/program";

/** The child's file descriptor of the channel to its supervisor. */
export const TIMETABLE_FD = 3;

/** Longer than any valid answer: error texts are truncated before they are sent, and lists come in pieces. */
export const MAX_ANSWER_LENGTH = 64 * 1024;
export const MAX_MESSAGE_LENGTH = 4_000;

export interface TimetableAsk {
  readonly n: number;
  /** The path of the bundle. */
  readonly bundle: string;
  readonly dagId: string;
  readonly call: DueCall;
  /** Requests many runs instead of one. */
  readonly piece?: PieceQuery;
}

/** The next runs after `call.last`, as `next` would have answered at the time; a piece of them. */
export interface PieceQuery {
  /** Runs with an earlier logical date are skipped. */
  readonly from: number;
  /** Excludes runs that are due later than this, and all that follow. */
  readonly until: number;
  readonly limit: number;
  /** After this time, returns the runs found so far. */
  readonly forMs: number;
}

export interface DuePiece {
  readonly runs: readonly DueFacts[];
  /** The last run of the list, included or skipped. Null: there are no more. */
  readonly last: DueFacts | null;
}

export type PieceOutcome =
  | { readonly ok: true; readonly piece: DuePiece }
  | Extract<DueOutcome, { ok: false }>;

export interface TimetableAnswer {
  readonly n: number;
  readonly outcome: DueOutcome | PieceOutcome;
}

/** Validates an answer: user code shares the process of its sender. */
export function readAnswer(raw: unknown): TimetableAnswer | null {
  const { n, outcome } = members<TimetableAnswer>(raw);
  if (typeof n !== "number") return null;
  const { ok, due, piece, error } = members<Record<"ok" | "due" | "piece" | "error", unknown>>(outcome);
  if (ok === true && piece !== undefined) {
    const read = readPiece(piece);
    return read === null ? null : { n, outcome: { ok, piece: read } };
  }
  if (ok === true) {
    const facts = due === null ? null : readDue(due);
    return facts === undefined ? null : { n, outcome: { ok, due: facts } };
  }
  const facts = readError(error);
  return facts === null ? null : { n, outcome: { ok: false, error: facts } };
}

/** The range of years that PostgreSQL and ISO texts both write with four digits. */
const EARLIEST = Date.parse("0001-01-01T00:00:00Z");
const LATEST = Date.parse("9999-12-31T23:59:59Z");

function readDue(raw: unknown): DueFacts | undefined {
  const { logicalDate, intervalStart, intervalEnd, runAfter } = members<DueFacts>(raw);
  if (!isInstant(logicalDate) || !isInstant(intervalStart)) return undefined;
  if (!isInstant(intervalEnd) || !isInstant(runAfter)) return undefined;
  return { logicalDate, intervalStart, intervalEnd, runAfter };
}

function readPiece(raw: unknown): DuePiece | null {
  const { runs, last } = members<DuePiece>(raw);
  if (!Array.isArray(runs)) return null;
  const read = runs.map(readDue);
  const facts = last === null ? null : readDue(last);
  if (facts === undefined || read.includes(undefined)) return null;
  return { runs: read as DueFacts[], last: facts };
}

function isInstant(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= EARLIEST && (value as number) <= LATEST;
}

function readError(raw: unknown): ErrorFacts | null {
  const { name, message, code } = members<ErrorFacts>(raw);
  if (typeof name !== "string" || typeof message !== "string") return null;
  return { name, message, stack: null, code: typeof code === "string" ? code : null };
}

function members<T>(raw: unknown): { readonly [K in keyof T]?: unknown } {
  return typeof raw === "object" && raw !== null ? raw : {};
}

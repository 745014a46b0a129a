/** What a scheduler and the process that asks timetables say to each other: one question at a time, one answer each. */
import type { DueCall, DueFacts, DueOutcome, ErrorFacts } from "@tradewind/sdk/program";

/** Of the child: the channel to its supervisor. */
export const TIMETABLE_FD = 3;

/** Longer than any honest answer: an error's texts are cut to size before they are sent, and lists come in pieces. */
export const MAX_ANSWER_LENGTH = 64 * 1024;
export const MAX_MESSAGE_LENGTH = 4_000;

export interface TimetableAsk {
  readonly n: number;
  /** The path of the bundle. */
  readonly bundle: string;
  readonly dagId: string;
  readonly call: DueCall;
  /** Many runs are wanted, not one. */
  readonly piece?: PieceWish;
}

/** The next runs after `call.last`, as `next` would have answered at the time; a piece of them. */
export interface PieceWish {
  /** Runs with a logical date before this are passed over. */
  readonly from: number;
  /** Neither one that is due later than this, nor any that follows it. */
  readonly until: number;
  readonly limit: number;
  /** After so long, what there is. */
  readonly forMs: number;
}

export interface DuePiece {
  readonly runs: readonly DueFacts[];
  /** The run that was answered last, whether it is among these or was passed over. null: there are no more. */
  readonly last: DueFacts | null;
}

export type PieceOutcome =
  | { readonly ok: true; readonly piece: DuePiece }
  | Extract<DueOutcome, { ok: false }>;

export interface TimetableAnswer {
  readonly n: number;
  readonly outcome: DueOutcome | PieceOutcome;
}

/** User code shares the process with the one who sends: nothing in it is taken on trust, and nothing else is taken. */
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

/** Of the years that PostgreSQL and an ISO text both write with four digits. */
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

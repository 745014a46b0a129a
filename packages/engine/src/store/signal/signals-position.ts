/**
 * Positions in the signal log. A position (tx, id) stands for everything up to and including that signal; its id may be
 * 0: "all transactions before tx". Transaction ids have 64 bits and stay text.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface LogPosition {
  readonly tx: string;
  readonly id: number;
}

/** Where to begin reading, and which later signals to exclude. */
export interface LogStart {
  readonly position: LogPosition;
  readonly afterVersion: number | null;
  readonly since: Date | null;
}

export const LOG_BEGIN: LogPosition = { tx: "0", id: 0 };

/** SQL: microseconds since 1970. A `Date` has milliseconds only, which cannot distinguish two signals. */
export function micros(column: string): string {
  return `(extract(epoch FROM ${column}) * 1000000)::bigint`;
}

export function comparePositions(a: LogPosition, b: LogPosition): number {
  if (a.tx === b.tx) return a.id - b.id;
  return a.tx.length === b.tx.length ? (a.tx < b.tx ? -1 : 1) : a.tx.length - b.tx.length;
}

export function laterPosition(a: LogPosition, b: LogPosition): LogPosition {
  return comparePositions(a, b) < 0 ? b : a;
}

/**
 * After all signals sent so far. Signals of transactions that are open now may still appear; they are excluded by version
 * only, which may be lower than the last visible one. Such a signal was also sent before.
 */
const NOW = statement(
  "signal-start-now",
  `SELECT pg_snapshot_xmin(pg_current_snapshot()) AS tx,
          coalesce((SELECT id FROM signal ORDER BY id DESC LIMIT 1), 0) AS version`,
);

/**
 * Open transactions may hold later versions at an earlier position than any visible one. OFFSET 0: the versions are found
 * by their own index instead of a scan of the log.
 */
const AFTER_VERSION = statement(
  "signal-start-version",
  `SELECT least(
     (SELECT min(tx) FROM (SELECT tx FROM signal WHERE id > $1 OFFSET 0) AS later),
     pg_snapshot_xmin(pg_current_snapshot())) AS tx`,
);

/** Index: signal_created. The time of a signal is the start of its transaction. */
const SINCE = statement(
  "signal-start-time",
  `SELECT least(
     (SELECT min(tx) FROM (SELECT tx FROM signal WHERE created_at >= $1 OFFSET 0) AS later),
     pg_snapshot_xmin(pg_current_snapshot())) AS tx`,
);

export async function startNow(db: Connection): Promise<LogStart> {
  const row = await db.one<{ tx: string; version: number }>(NOW);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: row!.version, since: null };
}

export async function startAfterVersion(db: Connection, version: number): Promise<LogStart> {
  const row = await db.one<{ tx: string }>(AFTER_VERSION, [version]);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: version, since: null };
}

export async function startSince(db: Connection, since: Date): Promise<LogStart> {
  const row = await db.one<{ tx: string }>(SINCE, [since]);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: null, since };
}
